"""A head in general, without a sentence: what it would like to look at, and what it would write (Elhage et al. 2021).

QK circuit: E W_Q W_Kᵀ Eᵀ · scale, the score that token i gives token j. OV circuit: E W_V W_O W_U, what looking at
token i adds to the logit of token j. Both are vocabulary × vocabulary, but of rank d_k, and kept as two thin factors.
What is left out: positions, biases, and the σ of the norms. The γ of the norm in front of the head and of the last one,
and the taking away of the mean, are part of the matrices. So the numbers say what a head prefers, in no unit.

Which heads read which? Composition scores between a head and all heads before it (Elhage et al. 2021).

Q-composition: the query of the later head reads what the earlier one wrote; K- and V-composition: its keys, its values.
Each is ‖product‖ / (‖one‖ ‖other‖) in the Frobenius norm, of W_QK = W_Qᵀ W_K or W_OV = W_O W_V: 0 where the later head
cannot read what the earlier one writes. Two random heads come to about 1/√d_model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from transformer.layer_norm import RMSNorm
from transformer.models import Model
from transformer.runs.head_places import Head, all_heads

BLOCK = 256  # rows of vocabulary × vocabulary that are made at a time
_TOKENS = 4096  # rows of E and W_U in double precision at a time


@dataclass(frozen=True)
class HeadMatrices:
    """One head's own part of the four projections, behind the norm in front of it: W_Q, W_K, W_V [channel, model] and
    W_O [model, channel]; ``scale``: of QKᵀ."""

    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor
    scale: float


def head_matrices(model: Model, stack: str, kind: str, *, layer: int, head: int) -> HeadMatrices:
    """``kind``: "self" or "cross". In cross-attention keys and values read the encoder's output, as it leaves its last
    norm. Heads that share keys have the same W_K and W_V. Raises ``ValueError`` for a head that does not exist."""
    block = model.get_submodule(stack).layers[layer]
    attention = block.get_submodule(f"{kind}_attention")
    if not 0 <= head < attention.n_heads:
        raise ValueError(f"there is no head {head}; this model has heads 0 to {attention.n_heads - 1}")
    width = attention.d_head
    shared = attention.n_heads // getattr(attention, "n_key_heads", attention.n_heads)
    own, its_key = (slice(place * width, (place + 1) * width) for place in (head, head // shared))
    norm = block.get_submodule(f"{kind}_attention_norm") if block.pre_norm else None
    behind = norm if kind == "self" else model.encoder.final_norm
    return HeadMatrices(
        query=behind_norm(_double(attention.query_projection.weight[own]), norm),
        key=behind_norm(_double(attention.key_projection.weight[its_key]), behind),
        value=behind_norm(_double(attention.value_projection.weight[its_key]), behind),
        output=_double(attention.output_projection.weight[:, own]),
        scale=attention.scale,
    )


def behind_norm(matrix: Tensor, norm: nn.Module | None) -> Tensor:
    """A matrix [row, model] that reads what a norm lets through, as one that reads what goes in (its σ taken as 1)."""
    if norm is None:
        return matrix
    scaled = matrix * _double(norm.weight)
    return scaled if isinstance(norm, RMSNorm) else scaled - scaled.mean(dim=-1, keepdim=True)


@dataclass(frozen=True)
class Circuit:
    """left · rightᵀ: vocabulary × vocabulary, of rank d_k. ``left``, ``right`` [token, channel].

    ``read_out``: whether ``right`` is W_U, which gives logits, or E, where nothing reads words out of this stack.
    """

    left: Tensor
    right: Tensor
    read_out: bool = False

    def eigenvalues(self) -> Tensor:
        """Those of left · rightᵀ that are not 0: AB and BA have the same, so a d_k × d_k matrix has them all."""
        return torch.linalg.eigvals(self.right.T @ self.left)

    @property
    def copying_score(self) -> float:
        """Σ λ / Σ |λ|, −1 … 1 (Elhage et al. 2021, "Copying"): 1 where every mix of tokens is written as itself, −1
        where it is suppressed; NaN for a matrix of zeros."""
        return net_share(self.eigenvalues())

    def strongest(
        self, most: int = 20, *, progress: Callable[[int, int], None] | None = None
    ) -> tuple[tuple[int, int, float], ...]:
        """The largest entries as (row, column, value), a block of rows at a time: the whole never exists."""
        left, right = self.left.float(), self.right.float().T
        values, places = left.new_zeros(0), torch.zeros(0, dtype=torch.long)
        for start in range(0, len(left), BLOCK):
            block = (left[start : start + BLOCK] @ right).flatten()
            found = block.topk(min(most, len(block)))
            values = torch.cat((values, found.values))
            places = torch.cat((places, found.indices + start * right.shape[1]))
            kept = values.topk(min(most, len(values))).indices
            values, places = values[kept], places[kept]
            if progress is not None:
                progress(min(start + BLOCK, len(left)), len(left))
        n_columns = right.shape[1]
        return tuple(
            (place // n_columns, place % n_columns, value)
            for place, value in zip(places.tolist(), values.tolist(), strict=True)
        )


def net_share(eigenvalues: Tensor) -> float:
    """Σ λ / Σ |λ|; NaN where all are 0."""
    size = float(eigenvalues.abs().sum())
    return float(eigenvalues.real.sum()) / size if size else float("nan")


def query_key_circuit(model: Model, stack: str, kind: str, *, layer: int, head: int) -> Circuit:
    """Row: the token that looks, column: the token it looks at (in cross-attention one of the source)."""
    matrices = head_matrices(model, stack, kind, layer=layer, head=head)
    looks, seen = embeddings(model, stack), embeddings(model, "encoder" if kind == "cross" else stack)
    return Circuit(looks @ matrices.query.T * matrices.scale, seen @ matrices.key.T)


def output_value_circuit(model: Model, stack: str, kind: str, *, layer: int, head: int) -> Circuit:
    """Row: the token that is looked at, column: the token whose logit that raises (``read_out``), or in whose direction
    it writes where nothing reads words out of this stack in one linear step."""
    matrices = head_matrices(model, stack, kind, layer=layer, head=head)
    seen = embeddings(model, "encoder" if kind == "cross" else stack)
    read_out = reads_words_out(model, stack)
    unembedding = _unembedding(model, stack) if read_out else embeddings(model, stack)
    return Circuit(seen @ matrices.value.T, unembedding @ matrices.output, read_out)


@dataclass(frozen=True)
class WrittenWords:
    """What looking at ``token`` does by a head's weights alone: the ids that it raises most and those that it lowers
    most, the strongest first."""

    token: int
    raised: tuple[int, ...]
    lowered: tuple[int, ...]


def written_words(
    model: Model, stack: str, kind: str, *, layer: int, head: int, tokens: Sequence[int], most: int = 5
) -> tuple[WrittenWords, ...]:
    """The rows of ``output_value_circuit`` that belong to ``tokens``, without the circuit. Empty for a head that writes
    nothing (its part of W_O is 0)."""
    matrices = head_matrices(model, stack, kind, layer=layer, head=head)
    seen = embeddings(model, "encoder" if kind == "cross" else stack, torch.tensor(tokens))
    written = seen @ matrices.value.T @ matrices.output.T  # [token, model]
    if not written.any():
        return ()
    part, read = model.get_submodule(stack), embeddings
    n_words = len(part.embedding.table.weight)
    if reads_words_out(model, stack):
        read, n_words = _unembedding, len(part.vocabulary_projection.weight)
    blocks = [slice(start, start + _TOKENS) for start in range(0, n_words, _TOKENS)]
    scores = torch.cat([written @ read(model, stack, rows).T for rows in blocks], dim=1)  # [token, word]
    raised, lowered = (scores.topk(min(most, n_words), largest=largest).indices.tolist() for largest in (True, False))
    return tuple(WrittenWords(*row) for row in zip(tokens, map(tuple, raised), map(tuple, lowered), strict=True))


def copying_scores(model: Model, stack: str, kind: str) -> list[list[float]]:
    """``copying_score`` of every head of a stack's attentions, [layer][head].

    λ(E W_V W_O W_U) are those of W_O (W_U E) W_V, and the square in the middle, [model, model], is the same for all
    heads: so the vocabulary is gone through once, ``_TOKENS`` rows at a time, and not once a head. Raises
    ``ValueError`` for a stack from which no linear step leads to words.
    """
    if not reads_words_out(model, stack):
        raise ValueError(f"nothing reads words out of the {stack} in one linear step")
    seen = "encoder" if kind == "cross" else stack
    n_tokens = len(model.get_submodule(seen).embedding.table.weight)
    between = sum(
        _unembedding(model, stack, rows).T @ embeddings(model, seen, rows)
        for rows in (slice(start, start + _TOKENS) for start in range(0, n_tokens, _TOKENS))
    )  # [model, model]
    scores = []
    for layer, block in enumerate(model.get_submodule(stack).layers):
        n_heads = block.get_submodule(f"{kind}_attention").n_heads
        heads = [head_matrices(model, stack, kind, layer=layer, head=head) for head in range(n_heads)]
        cores = [one.output.T @ between @ one.value.T for one in heads]  # [channel, channel]
        scores.append([net_share(torch.linalg.eigvals(core)) for core in cores])
    return scores


def reads_words_out(model: Model, stack: str) -> bool:
    """Whether one linear step leads from the stack's stream to the words."""
    return isinstance(getattr(model.get_submodule(stack), "vocabulary_projection", None), nn.Linear)


def _unembedding(model: Model, stack: str, rows: slice = slice(None)) -> Tensor:
    """W_U [token, model] of the tokens ``rows``, behind the stack's last norm."""
    part = model.get_submodule(stack)
    return behind_norm(_double(part.vocabulary_projection.weight[rows]), part.final_norm)


def embeddings(model: Model, stack: str, rows: slice | Tensor = slice(None)) -> Tensor:
    """E · scale [token, model] of the tokens ``rows``, behind the projection of a table that is narrower than the
    model."""
    embedding = model.get_submodule(stack).embedding
    table = _double(embedding.table.weight[rows]) * embedding.scale
    projection = getattr(embedding, "projection", None)
    return table if projection is None else table @ _double(projection.weight).T


def _double(tensor: Tensor) -> Tensor:
    return tensor.detach().double()


WAYS = ("query", "key", "value")


@dataclass(frozen=True)
class Composition:
    """``scores`` [later head, earlier head], 0…1; NaN where the one does not come before the other, or writes to a
    stack that the other does not read. ``random``: what two random heads come to."""

    way: str
    later: tuple[Head, ...]
    earlier: tuple[Head, ...]
    scores: np.ndarray
    random: float


def composition(model: Model, stack: str, *, way: str) -> Composition:
    """All heads of ``stack`` with all heads that write what they read.

    ``way``: "query", "key" or "value". Keys and values of cross-attention read the encoder, so that the encoder's heads
    come before it. The σ of norms and everything that is not linear is left out.
    """
    if way not in WAYS:
        raise ValueError(f"way is {way!r}; choose one of {', '.join(WAYS)}")
    heads = all_heads(model.config)
    later = tuple(head for head in heads if head.stack == stack)
    earlier = tuple(head for head in heads if any(_reads(one, head, way) for one in later))
    matrices = {
        place: head_matrices(model, place.stack, place.kind, layer=place.layer, head=place.head)
        for place in {*later, *earlier}
    }
    if not earlier:  # one layer alone
        return Composition(way, later, (), np.empty((len(later), 0)), model.config.d_model**-0.5)
    outputs = torch.stack([matrices[place].output for place in earlier])  # [earlier head, model, channel]
    values = torch.stack([matrices[place].value @ matrices[place].value.T for place in earlier])
    sizes = [
        _norm(matrices[place].output.T @ matrices[place].output, its)
        for place, its in zip(earlier, values, strict=True)
    ]
    scores = np.full((len(later), len(earlier)), np.nan)
    for row, place in enumerate(later):
        known = [column for column, before in enumerate(earlier) if _reads(place, before, way)]
        reader, other, size = _reader(matrices[place], way)
        between = reader @ outputs[known]  # [earlier head, channel, channel]: what is read of what was written
        products = ((other @ between) * (between @ values[known])).sum(dim=(1, 2)).clamp(min=0).sqrt()
        for column, product in zip(known, products.tolist(), strict=True):
            scores[row, column] = product / (size * sizes[column]) if size * sizes[column] else 0.0
    return Composition(way, later, earlier, scores, model.config.d_model**-0.5)


def _reads(later: Head, earlier: Head, way: str) -> bool:
    """Whether the later head reads, in this way, what the earlier one wrote."""
    if later.kind == "cross" and way != "query":
        return earlier.stack == "encoder"
    if later.stack != earlier.stack:
        return False
    order = ("self", "cross")
    return (earlier.layer, order.index(earlier.kind)) < (later.layer, order.index(later.kind))


def _reader(matrices: HeadMatrices, way: str) -> tuple[Tensor, Tensor, float]:
    """Of a later head: the matrix [channel, model] that reads, P Pᵀ of the one behind it, and the size of both."""
    reader, behind = {
        "query": (matrices.query, matrices.key),
        "key": (matrices.key, matrices.query),
        "value": (matrices.value, matrices.output.T),
    }[way]
    other = behind @ behind.T
    return reader, other, _norm(reader @ reader.T, other)


def _norm(first: Tensor, second: Tensor) -> float:
    """‖Aᵀ B‖ from A Aᵀ and B Bᵀ, both [channel, channel]."""
    return float(torch.trace(first @ second).clamp(min=0).sqrt())
