"""What one head is worth to one answer: the probability of every token of it, with the head and without."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from transformer.analysis.answers import answer_of, softmax
from transformer.checkpoint import Checkpoint
from transformer.edits import ablate_head
from transformer.probes import record
from transformer.recorded import activations_of
from transformer.traces import Trace


@dataclass(frozen=True)
class HeadEffect:
    """``displays``: the answer's tokens (or the class); ``before``, ``after``: natural log p of each, [token].

    The answer is the one that the whole model gave; it is not written anew. Empty: the model was asked nothing.
    """

    displays: tuple[str, ...]
    before: np.ndarray
    after: np.ndarray

    @property
    def change(self) -> float:
        """Σ log p without the head − Σ log p with it: below 0, the head helped this answer."""
        return float((self.after - self.before).sum())

    @property
    def factor(self) -> float:
        """By what the probability of the whole answer is multiplied when the head is removed."""
        return float(np.exp(self.change))


def head_effect(
    checkpoint: Checkpoint, trace: Trace, sentence: str, stack: str, layer: int, kind: str, *, head: int
) -> HeadEffect:
    """Run the model over the very tokens of ``trace`` (made from ``sentence``) once more, with one head zeroed.

    "Are Sixteen Heads Really Better than One?" (Michel et al. 2019, §2.3): the head's context is set to 0 before W_O.
    """
    sequences = [tokens for tokens in (trace.source, trace.target) if tokens is not None]
    inputs = [torch.tensor([tokens.ids], device=checkpoint.model.device) for tokens in sequences]
    edit = ablate_head(stack, layer=layer, kind=kind, head=head)
    with torch.inference_mode(), record([edit]) as recording:
        checkpoint.model(*inputs)
        activations = activations_of(checkpoint.model, recording)
    if checkpoint.config.n_classes:
        chances = [softmax(run["classifier.logits"].values) for run in (trace.activations, activations)]
        best = int(chances[0].argmax())
        before, after = (np.log(chance[best : best + 1]) for chance in chances)
        return HeadEffect((checkpoint.config.class_names[best],), before, after)
    whole = answer_of(checkpoint, trace, sentence).parts
    without = answer_of(checkpoint, replace(trace, activations=activations), sentence).parts
    before, after = (np.log([part.probability for part in parts]) for parts in (whole, without))
    return HeadEffect(tuple(part.display for part in whole), before, after)
