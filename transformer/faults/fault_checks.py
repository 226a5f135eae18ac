"""Six checks, one per fault: each asks a question whose answer is known for a healthy model.

Every check uses a ``CheckedModel`` alone and knows neither its fault nor a healthy model. It returns ``None`` if the
question does not apply: no decoder, no padding, a text of one word.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

from transformer.faults.forward_faults import PADS, inject_fault, position_bias, score_names
from transformer.faults.training_faults import trained_toy
from transformer.models import Model
from transformer.probes import Edit, record
from transformer.runs.attention_view import AttentionView
from transformer.runs.traces import Trace
from transformer.toy.learner import HEALTHY, ToyLearner
from transformer.toy.tasks import batch_of, label_letters

_NOTHING = 1e-3  # smaller changes, relative to the usual size, are rounding
_REPEATS = 0.9  # smallest share of rows for which a model counts as repeating its input


@dataclass(frozen=True)
class CheckedModel:
    """A model that runs with ``edits``, and its inputs, [1, position] each.

    Attributes:
        source: Tokens that its encoder reads, without padding; ``None`` without an encoder.
        read: Tokens that its decoder reads; ``None`` without a decoder.
        targets: Tokens that the decoder should predict at the positions of ``read``.
        norm: Position of LayerNorm for which the weights were trained, "pre" or "post".
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


def checked_model(trace: Trace, fault: str = HEALTHY) -> CheckedModel:
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
    """Return a tiny model set up as during its training; its targets are the output for ``word``."""
    batch = batch_of(learner.task, word)
    return CheckedModel(learner.model, learner.training_edits, batch.source, batch.read, batch.targets, "pre")


def self_attention_in_training(learner: ToyLearner, word: str) -> tuple[AttentionView, tuple[str, ...]]:
    """Return the decoder's self-attention on the correct output, as in training, and the targets."""
    checked = checked_model_in_training(learner, word)
    _, tensors = checked.run()
    name = "decoder.layers.0.self_attention"
    tokens = label_letters(checked.read[0].tolist(), "target")
    parts = {part: tensors[f"{name}.{part}"][0].numpy(force=True) for part in ("weights", "allowed", "scores")}
    view = AttentionView(name=name, stack="decoder", layer=0, kind="self", query=tokens, key=tokens, **parts)
    return view, label_letters(checked.targets[0].tolist(), "prediction").labels


@dataclass(frozen=True)
class Finding:
    """Result of one check.

    Attributes:
        check: The fault that it looks for.
        value: The number that decides.
        fires: Whether the fault is found.
        healthy: The value in a healthy model, as a symbol ("1", "0", "> 0").
        numbers: Further numbers.
    """

    check: str
    value: float
    healthy: str
    fires: bool
    numbers: Mapping[str, float] = field(default_factory=dict)


def scale(checked: CheckedModel) -> Finding | None:
    """Check whether scores are q·k / √d_k.

    The value is the factor between the recorded scores and q·k, times √d_k: 1, or √d_k if the scaling is missing. The
    check does not apply to a model with other scores (another scale, a cap, other terms).
    """
    width = checked.model.config.d_head
    if width == 1 or checked.model.config.is_guest:
        return None
    _, tensors = checked.run()
    products, scores = [], []
    for name in score_names(checked.model):
        query, key = (tensors[f"{name.removesuffix('scores')}{part}"] for part in ("query", "key"))
        products.append((query @ key.transpose(-2, -1)).flatten())
        scores.append((tensors[name] - position_bias(checked.model, tensors, name)).flatten())
    product, score = torch.cat(products).double(), torch.cat(scores).double()
    factor = float((product @ score) / (product @ product)) * math.sqrt(width)
    numbers = {"score_std": float(score.std()), "root": math.sqrt(width), "entropy": _mean_entropy(checked, tensors)}
    return Finding("scale", factor, "1", abs(factor - 1) > 0.01, numbers)


def positions(checked: CheckedModel) -> Finding | None:
    """Check whether word order matters: the change of layer 0's result if the words are reversed.

    In an encoder each word is compared with itself at its new position; one with segments keeps its separators, and
    only the words before the first one move, so that each stays in its segment. In a decoder-only model, whose causal
    mask tells early from late, only the last word is compared, which sees all others in both orders. The change is in
    units of the usual size.
    """
    stack = "encoder" if checked.has("encoder") else "decoder"
    ids = checked.source if stack == "encoder" else checked.read
    n_moved = _first_separator(checked, ids) if stack == "encoder" else ids.shape[1] - 1
    order = torch.tensor([*reversed(range(n_moved)), *range(n_moved, ids.shape[1])])
    other = ids[:, order]
    if n_moved < 2 or torch.equal(other, ids):
        return None
    name = f"{stack}.layers.0.residual.out"
    before = checked.run()[1][name]
    after = checked.run(**{"source" if stack == "encoder" else "read": other})[1][name][:, order]
    if stack == "decoder":
        before, after = before[:, -1:], after[:, -1:]
    change = _change(before, after)
    return Finding("positions", change, "> 0", change < _NOTHING, {"tokens": n_moved})


def _first_separator(checked: CheckedModel, ids: Tensor) -> int:
    """Return the position of the first separator; without segments, the number of tokens."""
    embedding = checked.model.encoder.embedding
    if getattr(embedding, "segment_table", None) is None:
        return ids.shape[1]
    separators = (ids[0] == embedding.separator_id).nonzero()
    return int(separators[0]) if len(separators) else ids.shape[1]


def causal(checked: CheckedModel) -> Finding | None:
    """Check whether a token depends on later ones: replace the last one and compare earlier logits."""
    if not checked.has("decoder") or checked.read.shape[1] < 2:
        return None
    other = checked.read.clone()
    last = checked.model.config.vocabulary_size - 1
    other[:, -1] = last if int(other[0, -1]) != last else last - 1
    before, after = checked.run()[0][:, :-1], checked.run(read=other)[0][:, :-1]
    change = _change(before, after)
    return Finding("causal", change, "0", change > _NOTHING, {"rows": before.shape[1]})


def target(checked: CheckedModel) -> Finding | None:
    """Check whether the model predicts the next token or repeats the one that it was given.

    The value is the share of rows that repeat.
    """
    if not checked.has("decoder"):
        return None
    logits = checked.run()[0][0]
    read, targets = checked.read[0], checked.targets[0]
    telling = read != targets  # if a token follows itself, both are right
    if not telling.any():
        return None
    share = float((logits.argmax(dim=-1) == read)[telling].float().mean())
    losses = {name: float(F.cross_entropy(logits, ids)) for name, ids in (("same", read), ("next", targets))}
    return Finding("target", share, "0", share > _REPEATS, losses)


def padding(checked: CheckedModel) -> Finding | None:
    """Check whether padding changes the output: ``PADS`` padding tokens are added after the source."""
    pad_id = checked.model.encoder.pad_id if checked.has("encoder") else None
    if pad_id is None:
        return None
    pads = min(PADS, checked.model.config.max_length - checked.source.shape[1])
    if pads < 1:
        return None
    padded = F.pad(checked.source, (0, pads), value=pad_id)
    before, after = checked.run()[0], checked.run(source=padded)[0]
    rows = slice(None, before.shape[1])  # a masked-token model has rows for padding as well
    change = _change(before, after[:, rows])
    return Finding("padding", change, "0", change > _NOTHING, {"pads": pads})


def norm(checked: CheckedModel) -> Finding | None:
    """Check whether LayerNorm is applied where it was when the weights were trained.

    If it is, the residual stream adds up: before + sub-layer = after (pre-norm), or = the input of LayerNorm
    (post-norm). The value is the largest difference. A norm after the sub-layer (Gemma 2) belongs to it.
    """
    _, tensors = checked.run()
    worst, first, last = 0.0, 0.0, 0.0
    for prefix, sublayer, before_name, after_name in _sublayers(tensors):
        written = f"{prefix}.{sublayer}_output_norm.output"
        before, update = tensors[before_name], tensors.get(written, tensors[f"{prefix}.{sublayer}.output"])
        after = tensors[after_name] if checked.norm == "pre" else tensors[f"{prefix}.{sublayer}_norm.input"]
        worst = max(worst, _change(before + update, after))
        first, last = first or float(before.std()), float(tensors[after_name].std())
    return Finding("norm", worst, "0", worst > _NOTHING, {"first": first, "last": last})


CHECKS: dict[str, Callable[[CheckedModel], Finding | None]] = {
    "scale": scale,
    "positions": positions,
    "causal": causal,
    "target": target,
    "padding": padding,
    "norm": norm,
}


Findings = Mapping[str, Finding | None]


def findings_with(trace: Trace, fault: str = HEALTHY) -> Findings:
    """Run all checks on the checkpoint of ``trace`` with a fault; ``None`` where a check does not apply."""
    return _findings(checked_model(trace, fault))


def findings_in_training(fault: str, word: str) -> Findings:
    """Run all checks on the tiny model ``trained_toy(fault)``, set up as during its training."""
    return _findings(checked_model_in_training(trained_toy(fault), word))


def _findings(checked: CheckedModel) -> Findings:
    return {name: check(checked) for name, check in CHECKS.items()}


def _change(before: Tensor, after: Tensor) -> float:
    """Return max |after − before|, in units of the spread of ``before``."""
    return float((after - before).abs().max() / before.std().clamp(min=1e-12))


def _mean_entropy(checked: CheckedModel, tensors: Mapping[str, Tensor]) -> float:
    """Return the mean entropy over all attention rows, in bits."""
    rows = []
    for name in score_names(checked.model):
        weights = tensors[f"{name.removesuffix('scores')}weights"].double()
        rows.append(torch.special.entr(weights).sum(dim=-1).flatten())
    return float(torch.cat(rows).mean()) / math.log(2)


def _sublayers(tensors: Mapping[str, Tensor]) -> list[tuple[str, str, str, str]]:
    """Return (layer, sub-layer, residual stream before it, and after it), in the order of the pass."""
    found = []
    stream = [name for name in tensors if ".residual." in name]
    for before, after in zip(stream, stream[1:], strict=False):
        prefix, stage = after.rsplit(".residual.", 1)
        if stage == "in":
            continue
        sublayer = "feed_forward" if stage == "out" else stage.removeprefix("after_")
        found.append((prefix, sublayer, before, after))
    return found
