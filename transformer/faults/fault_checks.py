"""Six checks, one for each mistake: each asks a model a question whose answer is known if the model is healthy.

Every check works on a ``Patient`` alone and knows neither its mistake nor a healthy model. It gives ``None`` where the
question cannot be asked: no decoder, no padding, a text of one word.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

from transformer.families.family_config import FamilyConfig
from transformer.faults.forward_faults import position_bias, score_names
from transformer.faults.patients import Patient

PADS = 4
_NOTHING = 1e-3  # changes below this share of the usual size are rounding
_REPEATS = 0.9  # a share of rows from which a model is said to repeat what it was given


@dataclass(frozen=True)
class Finding:
    """``check``: the mistake that it looks for. ``value``: the number that decides; ``fires``: whether it is found.

    ``healthy``: what the value is in a healthy model, in words of one symbol ("1", "0", "> 0"). ``numbers``: more.
    """

    check: str
    value: float
    healthy: str
    fires: bool
    numbers: Mapping[str, float] = field(default_factory=dict)


def scale(patient: Patient) -> Finding | None:
    """Are the scores q·k / √d_k? The factor between the recorded scores and q·k, times √d_k: 1, or √d_k without it.

    Not asked of a model whose scores are something else (another scale, a cap, other terms).
    """
    width = patient.model.config.d_head
    if width == 1 or isinstance(patient.model.config, FamilyConfig):
        return None
    _, tensors = patient.run()
    products, scores = [], []
    for name in score_names(patient.model):
        query, key = (tensors[f"{name.removesuffix('scores')}{part}"] for part in ("query", "key"))
        products.append((query @ key.transpose(-2, -1)).flatten())
        scores.append((tensors[name] - position_bias(patient.model, tensors, name)).flatten())
    product, score = torch.cat(products).double(), torch.cat(scores).double()
    factor = float((product @ score) / (product @ product)) * math.sqrt(width)
    numbers = {"score_std": float(score.std()), "root": math.sqrt(width), "entropy": _mean_entropy(patient, tensors)}
    return Finding("scale", factor, "1", abs(factor - 1) > 0.01, numbers)


def positions(patient: Patient) -> Finding | None:
    """Does the order of the words matter? They are reversed; by how much does what layer 0 makes of them change?

    An encoder's words are compared each with itself at its new place. In a decoder-only model, whose causal mask tells
    early from late, only the last word is compared, which sees all others in both orders. In units of the usual size.
    """
    stack = "encoder" if patient.has("encoder") else "decoder"
    ids = patient.source if stack == "encoder" else patient.read
    n_moved = ids.shape[1] if stack == "encoder" else ids.shape[1] - 1
    order = torch.tensor([*reversed(range(n_moved)), *range(n_moved, ids.shape[1])])
    other = ids[:, order]
    if n_moved < 2 or torch.equal(other, ids):
        return None
    name = f"{stack}.layers.0.residual.out"
    before = patient.run()[1][name]
    after = patient.run(**{"source" if stack == "encoder" else "read": other})[1][name][:, order]
    if stack == "decoder":
        before, after = before[:, -1:], after[:, -1:]
    change = _change(before, after)
    return Finding("positions", change, "> 0", change < _NOTHING, {"tokens": n_moved})


def causal(patient: Patient) -> Finding | None:
    """Does a word know what comes after it? The last token read is replaced; do the logits before it change?"""
    if not patient.has("decoder") or patient.read.shape[1] < 2:
        return None
    other = patient.read.clone()
    last = patient.model.config.vocabulary_size - 1
    other[:, -1] = last if int(other[0, -1]) != last else last - 1
    before, after = patient.run()[0][:, :-1], patient.run(read=other)[0][:, :-1]
    change = _change(before, after)
    return Finding("causal", change, "0", change > _NOTHING, {"rows": before.shape[1]})


def target(patient: Patient) -> Finding | None:
    """Does it predict the next token, or the one that it was just given? The share of rows that say the latter."""
    if not patient.has("decoder"):
        return None
    logits = patient.run()[0][0]
    read, asked = patient.read[0], patient.asked[0]
    telling = read != asked  # where a token is to follow itself, both are right
    if not telling.any():
        return None
    share = float((logits.argmax(dim=-1) == read)[telling].float().mean())
    losses = {name: float(F.cross_entropy(logits, ids)) for name, ids in (("same", read), ("next", asked))}
    return Finding("target", share, "0", share > _REPEATS, losses)


def padding(patient: Patient) -> Finding | None:
    """Do tokens that mean nothing change the answer? ``PADS`` of them are put behind the sentence that is encoded."""
    pad_id = patient.model.encoder.pad_id if patient.has("encoder") else None
    if pad_id is None:
        return None
    pads = min(PADS, patient.model.config.max_length - patient.source.shape[1])
    if pads < 1:
        return None
    padded = F.pad(patient.source, (0, pads), value=pad_id)
    before, after = patient.run()[0], patient.run(source=padded)[0]
    rows = slice(None, before.shape[1])  # a masked-token model gives a row for each pad, too
    change = _change(before, after[:, rows])
    return Finding("padding", change, "0", change > _NOTHING, {"pads": pads})


def norm(patient: Patient) -> Finding | None:
    """Does LayerNorm stand where the weights were trained with it? The residual stream has to add up there:
    before + sub-layer = after (pre-norm), or = what LayerNorm reads (post-norm); the largest difference. A norm behind
    the sub-layer (Gemma 2) belongs to it."""
    _, tensors = patient.run()
    worst, first, last = 0.0, 0.0, 0.0
    for prefix, sublayer, before_name, after_name in _sublayers(tensors):
        written = f"{prefix}.{sublayer}_output_norm.output"
        before, update = tensors[before_name], tensors.get(written, tensors[f"{prefix}.{sublayer}.output"])
        after = tensors[after_name] if patient.norm == "pre" else tensors[f"{prefix}.{sublayer}_norm.input"]
        worst = max(worst, _change(before + update, after))
        first, last = first or float(before.std()), float(tensors[after_name].std())
    return Finding("norm", worst, "0", worst > _NOTHING, {"first": first, "last": last})


CHECKS: dict[str, Callable[[Patient], Finding | None]] = {
    "scale": scale,
    "positions": positions,
    "causal": causal,
    "target": target,
    "padding": padding,
    "norm": norm,
}


def _change(before: Tensor, after: Tensor) -> float:
    """max |after − before|, in units of the spread of ``before``."""
    return float((after - before).abs().max() / before.std().clamp(min=1e-12))


def _mean_entropy(patient: Patient, tensors: Mapping[str, Tensor]) -> float:
    """Mean over all attention rows, in bits."""
    rows = []
    for name in score_names(patient.model):
        weights = tensors[f"{name.removesuffix('scores')}weights"].double()
        rows.append(torch.special.entr(weights).sum(dim=-1).flatten())
    return float(torch.cat(rows).mean()) / math.log(2)


def _sublayers(tensors: Mapping[str, Tensor]) -> list[tuple[str, str, str, str]]:
    """(layer, sub-layer, name of the stream before it, name of the stream after it), in the order of the pass."""
    found = []
    stream = [name for name in tensors if ".residual." in name]
    for before, after in zip(stream, stream[1:], strict=False):
        prefix, stage = after.rsplit(".residual.", 1)
        if stage == "in":
            continue
        sublayer = "feed_forward" if stage == "out" else stage.removeprefix("after_")
        found.append((prefix, sublayer, before, after))
    return found
