"""A model as it runs, with any fault, and its inputs: all that a check knows."""

from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.faults.forward_faults import inject_fault
from transformer.models import Model
from transformer.probes import Edit, record
from transformer.runs.activation_arrays import RecordedActivations
from transformer.runs.attention_view import AttentionView
from transformer.runs.traces import Trace
from transformer.toy.learner import ToyLearner
from transformer.toy.tasks import batch_of, label_letters


@dataclass(frozen=True)
class CheckedModel:
    """A model that runs with ``edits``, and its inputs, [1, position] each.

    Attributes:
        source: Tokens that its encoder reads, without padding; ``None`` without an encoder.
        read: Tokens that its decoder reads; ``None`` without a decoder.
        targets: Tokens that the decoder should predict at the positions of ``read``.
        norm: Position of LayerNorm with which the weights were trained, "pre" or "post".
    """

    model: Model
    edits: tuple[Edit, ...]
    source: Tensor | None
    read: Tensor | None
    targets: Tensor | None
    norm: str

    def run(self, *, source: Tensor | None = None, read: Tensor | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        """Run one pass over its own texts, or others; return logits and recorded tensors with batch axis."""
        source = self.source if source is None else source
        read = self.read if read is None else read
        with torch.inference_mode(), record(self.edits) as recording:
            logits = self.model(*(ids for ids in (source, read) if ids is not None))
        return logits, recording.tensors

    def has(self, stack: str) -> bool:
        """Return whether the model has this stack."""
        return (self.source if stack == "encoder" else self.read) is not None


def checked_model(trace: Trace, fault: str = "") -> CheckedModel:
    """Return the checkpoint of ``trace`` with a fault of the forward pass.

    The targets are the output in ``trace``, which is the healthy model's. For the faults see
    ``transformer.faults.forward_faults``.
    """
    checkpoint = trace.checkpoint
    faulty, edits = inject_fault(checkpoint, fault)
    device = checkpoint.model.device

    def ids(tokens) -> Tensor | None:
        real = None if tokens is None else [token.id for token in tokens if not token.is_padding]
        return None if real is None else torch.tensor([real], device=device)

    has_decoder = checkpoint.config.has_decoder
    return CheckedModel(
        model=faulty.model,
        edits=edits,
        source=ids(trace.source),
        read=ids(trace.target) if has_decoder else None,
        targets=ids(trace.prediction) if has_decoder else None,
        norm=checkpoint.config.norm,
    )


def checked_model_in_training(learner: ToyLearner, word: str) -> CheckedModel:
    """Return a tiny model as it runs in its training; its targets are the output for ``word``."""
    batch = batch_of(learner.task, word)
    return CheckedModel(learner.model, learner.training_edits, batch.source, batch.read, batch.targets, "pre")


def self_attention_in_training(learner: ToyLearner, word: str) -> tuple[AttentionView, tuple[str, ...]]:
    """Return the decoder's self-attention on the correct output, as in training, and the targets."""
    checked = checked_model_in_training(learner, word)
    _, tensors = checked.run()
    name = "decoder.layers.0.self_attention"
    recorded = RecordedActivations(learner.model.probes, tensors)
    tokens = label_letters(checked.read[0].tolist(), "target")
    parts = {part: recorded[f"{name}.{part}"].values for part in ("weights", "allowed", "scores")}
    view = AttentionView(name=name, stack="decoder", layer=0, kind="self", query=tokens, key=tokens, **parts)
    return view, label_letters(checked.targets[0].tolist(), "prediction").labels
