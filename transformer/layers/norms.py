"""Norms step by step: statistics of every position, and one token at every step of a sub-layer.

The steps are in the order in which the model computes them: norm before the sub-layer, or after the addition.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from torch import Tensor, nn

from transformer.files.checkpoints import Checkpoint
from transformer.guests.described_parts import not_exposed
from transformer.layer_norm import RMSNorm
from transformer.layers.residual_stream import SubLayer, Values, sublayers, summands
from transformer.runs.traces import Trace

Vectors = TypeVar("Vectors", np.ndarray, Tensor)  # [row, model]


@dataclass(frozen=True)
class NormStatistics:
    """Mean and biased standard deviation (without ε) over the model dimension, [position]."""

    mean_before: np.ndarray
    std_before: np.ndarray
    mean_after: np.ndarray
    std_after: np.ndarray


def norm_statistics(trace: Trace, name: str, *, after: str = "normalized") -> NormStatistics:
    """Return statistics before and after the norm ``name``.

    ``after`` is "normalized" (before γ and β) or "output".
    """
    if after not in ("normalized", "output"):
        raise ValueError(f"after is {after!r}; choose normalized or output")
    before, result = trace.values(f"{name}.input"), trace.values(f"{name}.{after}")
    return NormStatistics(before.mean(axis=-1), before.std(axis=-1), result.mean(axis=-1), result.std(axis=-1))


@dataclass(frozen=True)
class NormSteps:
    """One position in one LayerNorm or RMSNorm, step by step; vectors are [model], as recorded.

    Attributes:
        mean: μ; ``None`` for RMSNorm.
        std: Biased σ without ε; for RMSNorm the root mean square √(mean(x²)).
        denominator: √(σ² + ε), as recorded.
        bias: β; ``None`` for RMSNorm.
        textbook: The other formula, γ · (x − μ) / (σ + ε) + β.
        recomputed: The model's own formula in double precision.
    """

    x: np.ndarray
    mean: float | None
    std: float
    epsilon: float
    denominator: float
    normalized: np.ndarray
    gain: np.ndarray
    bias: np.ndarray | None
    output: np.ndarray
    recomputed: np.ndarray
    textbook: np.ndarray

    def columns(self, first: int, count: int) -> dict[str, np.ndarray]:
        """Return ``count`` dimensions from ``first`` on, one column per step."""
        columns = {"dimension": np.arange(len(self.x)), "x": self.x}
        if self.bias is None:
            columns |= {"÷ √(mean(x²) + ε)": self.normalized, "γ": self.gain, "output": self.output}
        else:
            columns |= {"x − μ": self.x - np.float32(self.mean), "÷ √(σ² + ε)": self.normalized, "γ": self.gain}
            columns |= {"β": self.bias, "output": self.output, "with (σ + ε)": self.textbook}
        return {name: column[first : first + count] for name, column in columns.items()}

    @property
    def largest_deviation(self) -> float:
        """Largest |recomputed − recorded|, due to rounding to single precision only."""
        return float(np.abs(self.recomputed - self.output).max())

    @property
    def textbook_difference(self) -> float:
        """Largest |(x − μ)/(σ + ε) formula − model's formula|, both in double precision."""
        return float(np.abs(self.textbook - self.recomputed).max())


def norm_steps(trace: Trace, name: str, position: int) -> NormSteps:
    """Compute the norm ``name`` (e.g. "encoder.layers.0.feed_forward_norm") at one position.

    LayerNorm: y = γ · (x − μ) / √(σ² + ε) + β (Ba et al. 2016, §3). RMSNorm: y = γ · x / √(mean(x²) + ε) (Zhang &
    Sennrich 2019).

    Raises:
        KeyError: If the trace lacks the norm.
    """
    x = trace.values(f"{name}.input")[position]
    gain, bias, epsilon = norm_parameters(trace.checkpoint, name)
    exact = x.astype(np.float64)
    mean, variance = (0.0, np.square(exact).mean()) if bias is None else (exact.mean(), exact.var())
    std, shift = float(np.sqrt(variance)), 0.0 if bias is None else bias
    return NormSteps(
        x=x,
        mean=None if bias is None else float(trace.values(f"{name}.mean")[position]),
        std=std,
        epsilon=epsilon,
        denominator=float(denominators(trace.checkpoint.model.get_submodule(name), name, trace.values)[position]),
        normalized=trace.values(f"{name}.normalized")[position],
        gain=gain,
        bias=bias,
        output=trace.values(f"{name}.output")[position],
        recomputed=gain * (exact - mean) / np.sqrt(variance + epsilon) + shift,
        textbook=gain * (exact - mean) / (std + epsilon) + shift,
    )


def denominators(norm: nn.Module, name: str, values: Values) -> np.ndarray:
    """Return the recorded divisor of a norm, √(σ² + ε), or √(mean(x²) + ε) for an RMSNorm: [position]."""
    if isinstance(norm, RMSNorm):
        return np.sqrt(values(f"{name}.mean_square").astype(np.float64) + norm.epsilon)
    return values(f"{name}.std").astype(np.float64)


def carry_through_norm(vectors: Vectors, norm: nn.Module, sigma: np.ndarray | float) -> Vectors:
    """Carry vectors, [row, model], through a norm whose σ is held fixed: v → γ (v − mean(v)) / σ.

    β belongs to no vector and is left out. RMSNorm does not subtract the mean.
    """
    centred = vectors if isinstance(norm, RMSNorm) else vectors - vectors.mean(axis=-1, keepdims=True)
    return centred * _gain(norm, vectors) / sigma


def carry_back_through_norm(directions: Vectors, norm: nn.Module, sigma: np.ndarray | float = 1.0) -> Vectors:
    """Carry ``directions``, [row, model], from a norm's output back to its input, with σ fixed.

    ⟨d, γ (x − μ)/σ⟩ = ⟨(γd − mean(γd))/σ, x⟩, because subtracting the mean is symmetric.
    """
    scaled = directions * _gain(norm, directions)
    return (scaled if isinstance(norm, RMSNorm) else scaled - scaled.mean(axis=-1, keepdims=True)) / sigma


def _gain(norm: nn.Module, like: Vectors) -> Vectors:
    gain = norm.weight.detach()
    return gain.to(like) if isinstance(like, Tensor) else gain.numpy(force=True).astype(like.dtype)


def norm_parameters(checkpoint: Checkpoint, name: str) -> tuple[np.ndarray, np.ndarray | None, float]:
    """Return γ [model], β [model] and ε of the norm ``name``; an RMSNorm has no β."""
    module = checkpoint.model.get_submodule(name)
    bias = getattr(module, "bias", None)
    return module.weight.detach().cpu().numpy(), None if bias is None else bias.detach().cpu().numpy(), module.epsilon


def norm_kind(checkpoint: Checkpoint, name: str) -> str:
    """Return whether the norm ``name`` is a "LayerNorm" or an "RMSNorm"."""
    return type(checkpoint.model.get_submodule(name)).__name__


def norm_names(trace: Trace, stack: str, layer: int) -> tuple[str, ...]:
    """Return the norms of one layer in the order of the forward pass, then those outside the layers.

    Outside the layers are the stack's final norm and, in some families, norms after the embedding or before the
    vocabulary. Norms of single heads (queries and keys of Qwen3) are left out: they are not part of the residual
    stream.
    """
    beside = (f"{stack}.final_norm", f"{stack}.embedding.norm", f"{stack}.vocabulary_projection.norm")
    names = [name.removesuffix(".input") for name in trace.names() if name.endswith("norm.input")]
    own = [name for name in names if name.startswith(f"{stack}.layers.{layer}.") and name.count(".") == 3]
    return (*own, *(name for name in beside if name in names))


def place_of_norm(name: str) -> str:
    """Return the kind of position of a norm: "self_attention_norm", "final_norm" and so on."""
    *_, parent, last = name.split(".")
    return f"{parent}_norm" if last == "norm" else last


def norms_by_place(trace: Trace, stack: str, layer: int) -> dict[str, str]:
    """Return ``norm_names`` by position.

    Raises:
        NotExposedError: If none was found in a guest.
    """
    if not (found := {place_of_norm(name): name for name in norm_names(trace, stack, layer)}):
        raise not_exposed("the steps of its norms")
    return found


@dataclass(frozen=True)
class Half:
    """The addition or the norm of a sub-layer, with recorded vectors of one token, [model] each, in order.

    Attributes:
        kind: For "norm", ``vectors`` holds "x" or "written" (the input, which is left out if it is the preceding sum),
            "normalized" and "scaled" (after γ and β). For "add", it holds "x" or "x_and_attention", "update" and "sum".
        sublayer: Kind of the sub-layer ("self_attention" …), or "" for a norm without one.
        norm: Name of the norm.
    """

    kind: str
    sublayer: str
    norm: str
    vectors: dict[str, np.ndarray]


def add_and_norm(trace: Trace, stack: str, layer: int, norm: str, position: int) -> tuple[Half, ...]:
    """Return the addition and the norms around the sub-layer of ``norm`` at one position.

    Pre-norm: the norm, whose output the sub-layer reads; then x + update = sum. Post-norm: x + update = sum, then its
    norm. If the output of a sub-layer is normalised as well (Gemma 2), that norm comes between. A norm without a
    sub-layer, such as the final norm, has no addition.

    ``norm`` is one of ``norm_names``.
    """
    found = _sublayer_of(trace, stack, layer, norm)
    if found is None:
        return (_norm(trace, norm, position, "", start="x"),)
    order = trace.checkpoint.config.norm
    before, update, total = (part[position] for part in summands(trace, found))
    if order == "post":
        add = Half("add", found.kind, found.norm, {"x": before, "update": update, "sum": total})
        return add, _norm(trace, found.norm, position, found.kind, start="")
    # In parallel layers (GPT-NeoX), the second sub-layer reads the input of the layer and is added last.
    alike = np.array_equal(before, trace.values(f"{found.norm}.input")[position])
    add = Half(
        "add", found.kind, found.norm, {"x" if alike else "x_and_attention": before, "update": update, "sum": total}
    )
    halves = [_norm(trace, found.norm, position, found.kind, start="x")]
    if found.update.endswith("_output_norm.output"):
        halves.append(_norm(trace, found.update.removesuffix(".output"), position, found.kind, start="written"))
    return (*halves, add)


def _sublayer_of(trace: Trace, stack: str, layer: int, norm: str) -> SubLayer | None:
    for one in sublayers(trace, stack):
        if one.layer == layer and norm in (one.norm, one.update.removesuffix(".output")):
            return one
    return None


def _norm(trace: Trace, norm: str, position: int, sublayer: str, *, start: str) -> Half:
    parts = {"normalized": "normalized", "scaled": "output"}
    if start:
        parts = {start: "input", **parts}
    vectors = {what: trace.values(f"{norm}.{part}")[position] for what, part in parts.items()}
    return Half("norm", sublayer, norm, vectors)
