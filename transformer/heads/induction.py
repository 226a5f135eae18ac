"""Induction heads: they find the last place where the token at hand stood, and look at what came after it.

Olsson et al. 2022, "In-context Learning and Induction Heads": in a sequence of random tokens that is written twice,
nothing but the first copy tells how the second one goes on, so what a head does there is not knowledge of language
(``induction_test``). In the sentence that was typed the rows are those of words that come again (``followers``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer.files.checkpoints import Checkpoint
from transformer.heads.weight_patterns import Measure, is_causal, special_tokens
from transformer.probes import record
from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import Head, all_heads
from transformer.text.special_ids import SpecialIds
from transformer.text.tokenizer import SPECIAL_IDS

LONGEST = 24  # tokens that are repeated
N_SEQUENCES = 16
LEAST_INDUCTION = 0.5  # at least half of the attention, as for the other places


@dataclass(frozen=True)
class InductionTest:
    """What every head did in sequences of random tokens, each written twice; ``lengths``: how many tokens each repeats.

    ``induction``, ``previous``: by head, 0…1, see ``induction_test``. ``chance``: the induction score of
    attention that is spread evenly over what it may look at.
    """

    lengths: tuple[int, ...]
    seed: int
    chance: float
    induction: Mapping[Head, float]
    previous: Mapping[Head, float]

    @property
    def heads(self) -> tuple[Head, ...]:
        """The induction heads: those whose score is at least ``LEAST_INDUCTION``. There may be none."""
        return tuple(place for place, score in self.induction.items() if score >= LEAST_INDUCTION)

    def measure(self, head: Head) -> Measure:
        """The score of one head beside its chance level."""
        return Measure(self.induction[head], self.chance, LEAST_INDUCTION, sum(self.lengths))

    @property
    def strongest(self) -> Head:
        """The head with the largest score, whether that is large or not."""
        return max(self.induction, key=self.induction.__getitem__)


def repeated_lengths(max_length: int) -> tuple[int, ...]:
    """How many tokens each sequence repeats in a model that reads ``max_length``: from a third of the longest to it.

    They differ, since a head that always looks, say, 19 tokens back would pass with sequences of 20 tokens, whatever
    these tokens are. The best such head scores at most about a tenth over all.
    """
    longest = min(LONGEST, (max_length - 1) // 2)
    shortest = max(2, longest // 3)
    return tuple(shortest + k * (longest - shortest) // (N_SEQUENCES - 1) for k in range(N_SEQUENCES))


def repeated_sequences(
    vocabulary_size: int, lengths: Sequence[int], *, seed: int, special: SpecialIds = SPECIAL_IDS
) -> list[Tensor]:
    """For every n of ``lengths`` a [1 + 2·n]: ``<s>`` r₁ … r_n r₁ … r_n, all r different and none of them special."""
    words = torch.tensor([id for id in range(vocabulary_size) if id not in special])
    if not 2 <= min(lengths) <= max(lengths) <= len(words):
        wrong = next(length for length in lengths if not 2 <= length <= len(words))
        raise ValueError(f"length is {wrong}; choose 2 to {len(words)} tokens, as many as can differ")
    generator = torch.Generator().manual_seed(seed)
    start = words[:1] if special.start is None else torch.tensor([special.start])
    drawn = [words[torch.randperm(len(words), generator=generator)[:length]] for length in lengths]
    return [torch.cat((start, once, once)) for once in drawn]


def induction_test(checkpoint: Checkpoint, *, seed: int = 0) -> InductionTest:
    """The induction score and the previous-token score of every head of a decoder-only model.

        induction = mean over i = n+1 … 2n of α_{i, i−n+1}      (position 0 is ``<s>``)
        previous  = mean over the same i of α_{i, i−1}

    At position i stands the second r; its first one stands at i − n, and what followed that at i − n + 1. The means are
    over the rows of all sequences, which have different n (``repeated_lengths``). Evenly spread attention scores the
    mean of 1 / (i + 1). The same seed gives the same sequences.

    Raises ``ValueError`` for a model that is not decoder-only: only there does the next token have to be foretold from
    what came before in the same text.
    """
    config = checkpoint.config
    if config.kind != "decoder-only":
        raise ValueError(f"{checkpoint.name} is {config.kind}; induction is looked for in decoder-only models")
    lengths = repeated_lengths(config.max_length)
    sequences = repeated_sequences(config.vocabulary_size, lengths, seed=seed, special=checkpoint.special)
    scores = sum(len(ids) // 2 * _scores_in(checkpoint, ids) for ids in sequences) / sum(lengths)
    heads = all_heads(config)  # layer by layer, as in the rows of the scores
    induction, previous = (dict(zip(heads, kind.flatten().tolist(), strict=True)) for kind in scores.unbind(dim=1))
    chance = sum(1 / (row + 1) for n in lengths for row in range(n + 1, 2 * n + 1)) / sum(lengths)
    return InductionTest(lengths, seed, chance, induction, previous)


def _scores_in(checkpoint: Checkpoint, ids: Tensor) -> Tensor:
    """[layer, 2, head]: ``repeated_scores`` of every layer that reads ``ids``."""
    names = [f"decoder.layers.{layer}.self_attention.weights" for layer in range(checkpoint.config.n_decoder_layers)]
    with torch.inference_mode(), record(names=names) as recording:
        checkpoint.model(ids[None].to(checkpoint.model.device))
    return torch.stack([repeated_scores(recording.tensors[name][0], len(ids) // 2) for name in names])


def repeated_scores(weights: Tensor, length: int) -> Tensor:
    """[2, head], induction and previous, of weights [head, query, key] over a sequence of ``repeated_sequences``."""
    rows = torch.arange(length + 1, 2 * length + 1, device=weights.device)
    return torch.stack([weights[:, rows, keys].mean(dim=1) for keys in (rows - length + 1, rows - 1)])


def followers(view: AttentionView) -> np.ndarray:
    """[query, key], ``True`` for the tokens that stand behind an earlier token like the query, where a mask hides what
    comes later; nowhere else: who reads both sides needs no memory of the last time."""
    n_queries, n_keys = view.allowed.shape
    found = np.zeros((n_queries, n_keys), dtype=bool)
    if not is_causal(view):
        return found
    ids = np.array(view.key.ids)
    found[:, 1:] = (ids[:, None] == ids[None, :-1]) & ~special_tokens(view.query)[:, None]
    return found & view.allowed & np.tri(n_queries, n_keys, dtype=bool)
