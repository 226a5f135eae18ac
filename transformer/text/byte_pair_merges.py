"""How byte-pair encoding builds a word, merge by merge (Sennrich, Haddow & Birch 2016, Algorithm 1)."""

from dataclasses import dataclass
from itertools import pairwise

from transformer.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class MergeStep:
    """The pieces of a word after one merge.

    Attributes:
        pieces: Pieces after the merge.
        merged: The pair that has just been joined.
        rank: Rank of the merge in the learned list (0 = first); ``None`` at the start, when every byte is separate.
    """

    pieces: tuple[str, ...]
    rank: int | None
    merged: tuple[str, str] | None


def merge_steps(tokenizer: Tokenizer, word: str, *, n_merges: int | None = None) -> list[MergeStep]:
    """Apply the learned merges to ``word`` (in the byte alphabet, as ``Tokenizer.words`` gives it).

    At each step the pair with the lowest rank is joined, everywhere in the word. With ``n_merges``, only that many
    learned merges are used, as with a smaller vocabulary.
    """
    merges = tokenizer.merges if n_merges is None else tokenizer.merges[:n_merges]
    rank_of = {pair: rank for rank, pair in enumerate(merges)}
    pieces = tuple(word)
    steps = [MergeStep(pieces, None, None)]
    while True:
        ranked = [(rank_of[pair], pair) for pair in pairwise(pieces) if pair in rank_of]
        if not ranked:
            return steps
        rank, pair = min(ranked)
        pieces = _join(pieces, pair)
        steps.append(MergeStep(pieces, rank, pair))


def _join(pieces: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    joined: list[str] = []
    position = 0
    while position < len(pieces):
        if pieces[position : position + 2] == pair:
            joined.append("".join(pair))
            position += 2
        else:
            joined.append(pieces[position])
            position += 1
    return tuple(joined)
