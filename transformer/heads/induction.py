"""Induction heads: attend to the token after an earlier occurrence of the current one.

Olsson et al. 2022, "In-context Learning and Induction Heads": in a sequence of random tokens that is repeated, only the
first copy predicts how the second one continues, so a head's behaviour there is not knowledge of language
(``induction_counts``). In a typed sentence, the rows are those of repeated words (``sentence_roles``).
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from transformer.files.checkpoints import Checkpoint
from transformer.heads.weight_patterns import Count
from transformer.probes import record
from transformer.text.special_ids import SpecialIds
from transformer.text.tokenizer import SPECIAL_IDS

LONGEST = 24  # largest number of tokens that are repeated
N_SEQUENCES = 16
LEAST_INDUCTION = 0.5  # at least half of the attention, as for other kinds of position


class InductionTest(NamedTuple):
    """What the test read: ``lengths`` tokens drawn at random, each sequence written twice.

    ``chance`` is the induction score of attention spread evenly over the allowed keys.
    """

    lengths: tuple[int, ...]
    seed: int
    chance: float


def repeated_lengths(max_length: int) -> tuple[int, ...]:
    """Return how many tokens each sequence repeats, from a third of the longest possible number up to it.

    The numbers differ, since a head that always attends, say, 19 tokens back would pass with sequences of 20 tokens.
    The best such head scores at most about a tenth over all lengths.
    """
    longest = min(LONGEST, (max_length - 1) // 2)
    shortest = max(2, longest // 3)
    return tuple(shortest + k * (longest - shortest) // (N_SEQUENCES - 1) for k in range(N_SEQUENCES))


def repeated_sequences(
    vocabulary_size: int, lengths: Sequence[int], *, seed: int, special: SpecialIds = SPECIAL_IDS
) -> list[Tensor]:
    """Return a sequence ``<s>`` r₁ … r_n r₁ … r_n, [1 + 2·n], for every n in ``lengths``.

    All r are different, and none is a special token.
    """
    words = torch.tensor([id for id in range(vocabulary_size) if id not in special])
    if not 2 <= min(lengths) <= max(lengths) <= len(words):
        wrong = next(length for length in lengths if not 2 <= length <= len(words))
        raise ValueError(f"length is {wrong}; choose 2 to {len(words)} tokens, as many as can differ")
    generator = torch.Generator().manual_seed(seed)
    start = words[:1] if special.start is None else torch.tensor([special.start])
    drawn = [words[torch.randperm(len(words), generator=generator)[:length]] for length in lengths]
    return [torch.cat((start, once, once)) for once in drawn]


def induction_counts(checkpoint: Checkpoint, *, seed: int = 0) -> tuple[InductionTest, list[dict[str, Count]]]:
    """Count the weight on the token after the earlier occurrence, and on the previous one.

        induction       = mean over i = n+1 … 2n of α_{i, i−n+1}      (position 0 is ``<s>``)
        previous_random = mean over the same i of α_{i, i−1}

    Position i holds the second occurrence of r; the first is at i − n, and the token after that at i − n + 1. The means
    are over the rows of all sequences, which have different n (``repeated_lengths``). Evenly spread attention scores
    the mean of 1 / (i + 1). The same seed gives the same sequences.

    Returns:
        What was read, and both counts for every layer.

    Raises:
        ValueError: If the model is not decoder-only: only there is the next token predicted from earlier tokens of the
            same text.
    """
    config = checkpoint.config
    if config.kind != "decoder-only":
        raise ValueError(f"{checkpoint.name} is {config.kind}; induction is looked for in decoder-only models")
    lengths = repeated_lengths(config.max_length)
    sequences = repeated_sequences(config.vocabulary_size, lengths, seed=seed, special=checkpoint.special)
    totals = sum(len(ids) // 2 * _scores_in(checkpoint, ids) for ids in sequences).numpy(force=True)
    chance, rows = sum(1 / (row + 1) for n in lengths for row in range(n + 1, 2 * n + 1)), sum(lengths)
    counts = [
        {"induction": Count.of(induction, chance, rows), "previous_random": Count.of(previous, chance, rows)}
        for induction, previous in totals
    ]
    return InductionTest(lengths, seed, chance / rows), counts


def _scores_in(checkpoint: Checkpoint, ids: Tensor) -> Tensor:
    """Return ``repeated_scores`` of every layer that reads ``ids``: [layer, 2, head]."""
    names = [f"decoder.layers.{layer}.self_attention.weights" for layer in range(checkpoint.config.n_decoder_layers)]
    with torch.inference_mode(), record(names=names) as recording:
        checkpoint.model(ids[None].to(checkpoint.model.device))
    return torch.stack([repeated_scores(recording.tensors[name][0], len(ids) // 2) for name in names])


def repeated_scores(weights: Tensor, length: int) -> Tensor:
    """Return induction and previous-token scores, [2, head], of weights [head, query, key].

    The weights are those over a sequence of ``repeated_sequences``.
    """
    rows = torch.arange(length + 1, 2 * length + 1, device=weights.device)
    return torch.stack([weights[:, rows, keys].mean(dim=1) for keys in (rows - length + 1, rows - 1)])
