"""A patient: a model as it runs, mistakes included, with what it is asked to read. Checks know nothing else of it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.faults.forward_faults import with_fault
from transformer.models import Model
from transformer.probes import Edit, record
from transformer.runs.activation_arrays import RecordedActivations
from transformer.runs.attention_view import AttentionView
from transformer.runs.traces import Trace
from transformer.toy.learner import ToyLearner
from transformer.toy.tasks import batch_of, labelled


@dataclass(frozen=True)
class Patient:
    """``model`` runs with ``edits``. ``source`` [1, position]: what its encoder reads, without padding; ``read``: what
    its decoder reads; ``asked``: what it is to predict there (``None`` where it has no such part).

    ``norm``: the place of LayerNorm that the weights were trained with, "pre" or "post".
    """

    model: Model
    edits: tuple[Edit, ...]
    source: Tensor | None
    read: Tensor | None
    asked: Tensor | None
    norm: str

    def run(self, *, source: Tensor | None = None, read: Tensor | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        """One pass over its own texts, or over others: the logits and everything recorded, both with the batch axis."""
        source = self.source if source is None else source
        read = self.read if read is None else read
        with torch.inference_mode(), record(self.edits) as recording:
            logits = self.model(*(ids for ids in (source, read) if ids is not None))
        return logits, recording.tensors

    def has(self, stack: str) -> bool:
        return (self.source if stack == "encoder" else self.read) is not None


def patient_of(trace: Trace, fault: str = "") -> Patient:
    """The checkpoint of ``trace`` with a mistake of the forward pass (``transformer.faults.forward_faults``), asked for
    the answer in ``trace``, which the healthy model gave."""
    checkpoint = trace.checkpoint
    faulty, edits = with_fault(checkpoint, fault)
    device = checkpoint.model.device

    def ids(tokens) -> Tensor | None:
        real = None if tokens is None else [token.id for token in tokens if not token.is_padding]
        return None if real is None else torch.tensor([real], device=device)

    has_decoder = checkpoint.config.has_decoder
    return Patient(
        model=faulty.model,
        edits=edits,
        source=ids(trace.source),
        read=ids(trace.target) if has_decoder else None,
        asked=ids(trace.prediction) if has_decoder else None,
        norm=checkpoint.config.norm,
    )


def patient_in_training(learner: ToyLearner, word: str) -> Patient:
    """A tiny model that runs as it does in its training, asked for the answer to ``word``."""
    batch = batch_of(learner.task, word)
    return Patient(learner.model, learner.training_edits, batch.source, batch.read, batch.asked, "pre")


def self_attention_in_training(learner: ToyLearner, word: str) -> tuple[AttentionView, tuple[str, ...]]:
    """The decoder's self-attention while the right answer is read as in training, and what each row is to predict."""
    patient = patient_in_training(learner, word)
    _, tensors = patient.run()
    name = "decoder.layers.0.self_attention"
    recorded = RecordedActivations(learner.model.probes, tensors)
    tokens = labelled(patient.read[0].tolist(), "target")
    parts = {part: recorded[f"{name}.{part}"].values for part in ("weights", "allowed", "scores")}
    view = AttentionView(name=name, stack="decoder", layer=0, kind="self", query=tokens, key=tokens, **parts)
    return view, labelled(patient.asked[0].tolist(), "prediction").labels
