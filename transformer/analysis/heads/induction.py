"""Induction heads: they find the last place where the token at hand stood, and look at what came after it.

Olsson et al. 2022, "In-context Learning and Induction Heads": in a sequence of random tokens that is written twice,
nothing but the first copy tells how the second one goes on, so what a head does there is not knowledge of language.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.files.checkpoints import Checkpoint
from transformer.probes import record
from transformer.roles.tally import Measure
from transformer.text.special_ids import SpecialIds
from transformer.text.tokenizer import SPECIAL_IDS

LENGTH = 20  # tokens that are repeated
N_SEQUENCES = 16
LEAST_INDUCTION = 0.5  # at least half of the attention, as for the other places (``head_roles``)


@dataclass(frozen=True)
class InductionTest:
    """What every head did in ``n_sequences`` sequences of ``length`` random tokens, each written twice.

    ``induction``, ``previous``: by (layer, head), 0…1, see ``induction_test``. ``chance``: the induction score of
    attention that is spread evenly over what it may look at.
    """

    n_sequences: int
    length: int
    seed: int
    chance: float
    induction: Mapping[tuple[int, int], float]
    previous: Mapping[tuple[int, int], float]

    @property
    def heads(self) -> tuple[tuple[int, int], ...]:
        """The induction heads: (layer, head) whose score is at least ``LEAST_INDUCTION``. There may be none."""
        return tuple(place for place, score in self.induction.items() if score >= LEAST_INDUCTION)

    def measure(self, place: tuple[int, int]) -> dict[str, Measure]:
        """The score of a (layer, head) beside its chance level."""
        rows = self.n_sequences * self.length
        return {"induction": Measure(self.induction[place], self.chance, LEAST_INDUCTION, rows)}

    @property
    def strongest(self) -> tuple[int, int]:
        """The (layer, head) with the largest score, whether that is large or not."""
        return max(self.induction, key=self.induction.__getitem__)


def repeated_sequences(
    vocabulary_size: int, *, length: int, n_sequences: int, seed: int, special: SpecialIds = SPECIAL_IDS
) -> Tensor:
    """[sequence, 1 + 2·length]: ``<s>`` r₁ … r_n r₁ … r_n, all r of a sequence different and none of them special."""
    words = torch.tensor([id for id in range(vocabulary_size) if id not in special])
    if not 2 <= length <= len(words):
        raise ValueError(f"length is {length}; choose 2 to {len(words)} tokens, as many as can differ")
    generator = torch.Generator().manual_seed(seed)
    drawn = [torch.randperm(len(words), generator=generator)[:length] for _ in range(n_sequences)]
    once = words[torch.stack(drawn)]
    start = words[0] if special.start is None else torch.tensor(special.start)
    return torch.cat((start.expand(n_sequences, 1), once, once), dim=1)


def induction_test(
    checkpoint: Checkpoint, *, length: int = LENGTH, n_sequences: int = N_SEQUENCES, seed: int = 0
) -> InductionTest:
    """The induction score and the previous-token score of every head of a decoder-only model.

        induction = mean over i = n+1 … 2n of α_{i, i−n+1}      (n = ``length``; position 0 is ``<s>``)
        previous  = mean over the same i of α_{i, i−1}

    At position i stands the second r; its first one stands at i − n, and what followed that at i − n + 1. A model that
    reads fewer than 1 + 2·``length`` tokens gets sequences as long as it can read. Evenly spread attention scores the
    mean of 1 / (i + 1). The same seed gives the same sequences.

    Raises ``ValueError`` for a model that is not decoder-only: only there does the next token have to be foretold from
    what came before in the same text.
    """
    config = checkpoint.config
    if config.kind != "decoder-only":
        raise ValueError(f"{checkpoint.name} is {config.kind}; induction is looked for in decoder-only models")
    length = min(length, (config.max_length - 1) // 2)
    ids = repeated_sequences(
        config.vocabulary_size, length=length, n_sequences=n_sequences, seed=seed, special=checkpoint.special
    )
    with torch.inference_mode(), record() as recording:
        checkpoint.model(ids.to(checkpoint.model.device))
    induction, previous = {}, {}
    for layer in range(config.n_decoder_layers):
        weights = recording.tensors[f"decoder.layers.{layer}.self_attention.weights"]  # [sequence, head, query, key]
        scores = repeated_scores(weights, length)
        for head, (after_first, before) in enumerate(zip(*(part.tolist() for part in scores), strict=True)):
            induction[layer, head], previous[layer, head] = after_first, before
    rows = range(length + 1, 2 * length + 1)
    chance = sum(1 / (row + 1) for row in rows) / length
    return InductionTest(n_sequences, length, seed, chance, induction, previous)


def repeated_scores(weights: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """(induction, previous), [head] each, of weights [sequence, head, query, key] over ``repeated_sequences``."""
    rows = torch.arange(length + 1, 2 * length + 1, device=weights.device)
    return weights[:, :, rows, rows - length + 1].mean(dim=(0, 2)), weights[:, :, rows, rows - 1].mean(dim=(0, 2))
