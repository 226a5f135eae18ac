"""One head of cross-attention that is taught which word translates which (Garg et al. 2019, "Jointly Learning to Align
and Translate with Transformer Models", §4).

    loss = cross-entropy + λ L_a      L_a = −1/|y| Σ_m Σ_n G_mn log A_mn

A: the weights of that head, row m those with which token m of the target is predicted. G: 1 at the source tokens that
token m is linked with, each row divided by its sum; a row without a link counts nothing (§4.2). The other heads are
left to themselves.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from transformer.models import Model
from transformer.probes import record
from transformer.text.tokenizer import Tokenizer
from transformer.training.objectives import Translation
from transformer.training.word_links import token_links

_SMALLEST = 1e-9  # a weight that has been rounded to 0 still has a logarithm


class TaughtTranslation(Translation):
    """Translation, and the alignment loss of head ``head`` in decoder layer ``layer`` (both from 0) times ``weight``.

    ``rate``: how many times faster than all other weights W_Q and W_K of that attention learn: where a head looks is
    theirs alone, and a model that is already trained is best left as it is.
    Its examples have a third part: the links (source word, target word).
    """

    def __init__(
        self, model: Model, label_smoothing: float = 0.0, *, layer: int, head: int, weight: float, rate: float
    ) -> None:
        super().__init__(model, label_smoothing)
        self.attention = f"decoder.layers.{layer}.cross_attention.weights"
        self.head, self.weight, self.rate = head, weight, rate
        self._alignment_loss: Tensor | float = 0.0

    def parameter_groups(self) -> list[dict]:
        attention = self.model.get_submodule(self.attention.removesuffix(".weights"))
        looking = [*attention.query_projection.parameters(), *attention.key_projection.parameters()]
        theirs = {id(parameter) for parameter in looking}
        others = [parameter for parameter in self.model.parameters() if id(parameter) not in theirs]
        return [{"params": others, "rate": 1.0}, {"params": looking, "rate": self.rate}]

    @staticmethod
    def encode(tokenizer: Tokenizer, examples: Sequence[tuple]) -> list[tuple]:
        plain = Translation.encode(tokenizer, examples)
        return [(*ids, token_links(tokenizer, example, *ids)) for example, ids in zip(examples, plain, strict=True)]

    def collate(self, examples: Sequence[tuple], generator: torch.Generator) -> dict[str, Tensor]:
        batch = super().collate([example[:2] for example in examples], generator)
        links = torch.zeros(len(examples), batch["target"].shape[1] - 1, batch["source"].shape[1])
        for number, (_, _, pairs) in enumerate(examples):
            for source, target in pairs:
                links[number, target, source] = 1.0
        return batch | {"links": links / links.sum(dim=-1, keepdim=True).clamp_min(1.0)}

    def hidden_and_targets(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        with record() as recording:
            found = super().hidden_and_targets(batch)
        weights = recording.tensors[self.attention][:, self.head]  # [batch, target position, source position]
        self._alignment_loss = alignment_loss(weights, batch["links"])
        return found

    def forward(self, batch: dict[str, Tensor]) -> tuple[Tensor, int]:
        loss, predictions = super().forward(batch)
        return loss + self.weight * self._alignment_loss, predictions


def alignment_loss(weights: Tensor, links: Tensor) -> Tensor:
    """−Σ_m Σ_n G_mn log A_mn, summed over the batch: both [batch, target position, source position]."""
    return -(links * weights.float().clamp_min(_SMALLEST).log()).sum()
