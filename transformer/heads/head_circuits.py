"""Circuits of a head without a sentence (Elhage et al. 2021): what it attends to and writes.

QK circuit: E W_Q W_Kᵀ Eᵀ · scale, the score that token i gives token j. OV circuit: E W_V W_O W_U, what attending to
token i adds to the logit of token j. Both are vocabulary × vocabulary, but of rank d_k, and stored as two thin factors.
Positions, biases, and the σ of the norms are left out. The γ of the norm before the head and of the final norm, and the
subtraction of the mean, are part of the matrices. So the numbers show what a head prefers, but have no unit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from transformer.guests.read_out import read_out_of
from transformer.layers.norms import carry_back_through_norm
from transformer.models import Model

BLOCK = 256  # rows of vocabulary × vocabulary computed at a time
_TOKENS = 4096  # rows of E and W_U in double precision at a time


@dataclass(frozen=True)
class HeadMatrices:
    """Projections of one head, combined with the norm before it.

    W_Q, W_K, W_V are [channel, model] and W_O is [model, channel]; ``scale`` multiplies QKᵀ.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor
    scale: float


def head_matrices(model: Model, stack: str, kind: str, *, layer: int, head: int) -> HeadMatrices:
    """Return the projections of one head; ``kind`` is "self" or "cross".

    In cross-attention, keys and values read the output of the encoder, after its final norm. Heads that share keys have
    the same W_K and W_V.

    Raises:
        ValueError: If the head does not exist.
    """
    block = model.get_submodule(stack).layers[layer]
    attention = block.get_submodule(f"{kind}_attention")
    if not 0 <= head < attention.n_heads:
        raise ValueError(f"there is no head {head}; this model has heads 0 to {attention.n_heads - 1}")
    width = attention.d_head
    own, its_key = (slice(place * width, (place + 1) * width) for place in (head, head // attention.heads_a_key))
    norm = block.get_submodule(f"{kind}_attention_norm") if block.pre_norm else None
    behind = norm if kind == "self" else model.encoder.final_norm
    return HeadMatrices(
        query=_before(_double(attention.query_projection.weight[own]), norm),
        key=_before(_double(attention.key_projection.weight[its_key]), behind),
        value=_before(_double(attention.value_projection.weight[its_key]), behind),
        output=_double(attention.output_projection.weight[:, own]),
        scale=attention.scale,
    )


def _before(matrix: Tensor, norm: nn.Module | None) -> Tensor:
    """Rewrite a matrix [row, model] that reads a norm's output to read its input, with σ = 1."""
    return matrix if norm is None else carry_back_through_norm(matrix, norm)


@dataclass(frozen=True)
class Circuit:
    """Matrix left · rightᵀ, vocabulary × vocabulary, of rank d_k; both factors are [token, channel].

    ``read_out`` says whether ``right`` is W_U, which gives logits, or E, if no words are predicted from this stack.
    """

    left: Tensor
    right: Tensor
    read_out: bool = False

    def eigenvalues(self) -> Tensor:
        """Return the nonzero eigenvalues of left · rightᵀ, which a d_k × d_k matrix shares."""
        return torch.linalg.eigvals(self.right.T @ self.left)

    @property
    def copying_score(self) -> float:
        """Return Σ λ / Σ |λ|, from −1 to 1 (Elhage et al. 2021, "Copying"); NaN for a zero matrix.

        The sum of the eigenvalues is the trace, so the sign says whether the head, averaged over all tokens, raises
        or lowers the logit of the token that it attends to. ±1: no eigenvalue has the other sign; a single token can
        still differ.
        """
        return net_share(self.eigenvalues())

    def strongest(
        self, most: int = 20, *, progress: Callable[[int, int], None] | None = None
    ) -> tuple[tuple[int, int, float], ...]:
        """Return the largest entries as (row, column, value), computed in blocks of rows."""
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
    """Return Σ λ / Σ |λ|; NaN if all are 0."""
    size = float(eigenvalues.abs().sum())
    return float(eigenvalues.real.sum()) / size if size else float("nan")


def query_key_circuit(model: Model, stack: str, kind: str, *, layer: int, head: int) -> Circuit:
    """Return the QK circuit: query tokens × key tokens (source tokens for cross-attention)."""
    matrices = head_matrices(model, stack, kind, layer=layer, head=head)
    looks, seen = embeddings(model, stack), embeddings(model, "encoder" if kind == "cross" else stack)
    return Circuit(looks @ matrices.query.T * matrices.scale, seen @ matrices.key.T)


def output_value_circuit(model: Model, stack: str, kind: str, *, layer: int, head: int) -> Circuit:
    """Return the OV circuit: what attending to a token (row) adds to the logit of each token (column).

    If no words are predicted from this stack in one linear step, columns are the tokens in whose direction it writes
    (``read_out``).
    """
    matrices = head_matrices(model, stack, kind, layer=layer, head=head)
    seen = embeddings(model, "encoder" if kind == "cross" else stack)
    read_out = reads_words_out(model, stack)
    unembedding = _unembedding(model, stack) if read_out else embeddings(model, stack)
    return Circuit(seen @ matrices.value.T, unembedding @ matrices.output, read_out)


@dataclass(frozen=True)
class WrittenWords:
    """Effect of attending to ``token``, from the weights alone: the ids that are raised and lowered most."""

    token: int
    raised: tuple[int, ...]
    lowered: tuple[int, ...]


def written_words(
    model: Model, stack: str, kind: str, *, layer: int, head: int, tokens: Sequence[int], most: int = 5
) -> tuple[WrittenWords, ...]:
    """Return the rows of ``output_value_circuit`` for ``tokens``, without the whole circuit.

    The result is empty for a head that writes nothing (its part of W_O is 0).
    """
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
    """Return ``copying_score`` of every head of a stack's attentions, [layer][head].

    λ(E W_V W_O W_U) equals λ of W_O (W_U E) W_V, and the square matrix in the middle, [model, model], is the same for
    all heads. So the vocabulary is processed only once, ``_TOKENS`` rows at a time, and not once per head.

    Raises:
        ValueError: If no linear step leads from the stack to words.
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
    """Return whether one linear step leads from the stack's residual stream to words."""
    found = read_out_of(model, stack)
    return found is not None and found.kind == "matrix"


def _unembedding(model: Model, stack: str, rows: slice = slice(None)) -> Tensor:
    """Return W_U, [token, model], of the tokens ``rows``, combined with the stack's final norm."""
    part = model.get_submodule(stack)
    return _before(_double(part.vocabulary_projection.weight[rows]), part.final_norm)


def embeddings(model: Model, stack: str, rows: slice | Tensor = slice(None)) -> Tensor:
    """Return E · scale, [token, model], of the tokens ``rows``, after the projection of a narrow table."""
    embedding = model.get_submodule(stack).embedding
    table = _double(embedding.table.weight[rows]) * embedding.scale
    return table if embedding.projection is None else table @ _double(embedding.projection.weight).T


def _double(tensor: Tensor) -> Tensor:
    return tensor.detach().double()
