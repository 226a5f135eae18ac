"""Vectors as points: nearest neighbours, analogies, principal components, sentence similarity.

This covers the neighbours of a row of the embedding matrix, sums such as "he" − "man" + "woman", and projections to two
dimensions.

The vector of a sentence, from an encoder without a head, is u[c] = Σ_i w_i[c] h_i[c], where h_i is the output of the
last layer at token i and w the pooling: 1/n each (mean), 1 for the first token (first), or 1 for the token with the
largest value (max). So the cosine is exactly a sum over pairs of tokens:

    cos(u, v) = Σ_i Σ_j (w_i ⊙ h_i) · (w′_j ⊙ h′_j) / (‖u‖ ‖v‖)

By then h_i has attended to the other tokens: a part belongs to position i, not to the word alone.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from transformer.files.checkpoints import Checkpoint
from transformer.layers.embedding_lookup import embedding_table
from transformer.runs.traces import Trace
from transformer.text.tokenizer import Tokenizer

# a, b, c and the expected word: a − b + c should be near it
ANALOGIES = (
    ("his", "he", "she", "her"),
    ("went", "go", "come", "came"),
    ("girls", "girl", "boy", "boys"),
    ("better", "good", "bad", "worse"),
    ("was", "is", "are", "were"),
    ("woman", "man", "boy", "girl"),
    ("Paris", "France", "Japan", "Tokyo"),
    ("elle", "il", "un", "une"),
)


@dataclass(frozen=True)
class Neighbour:
    """Row of a matrix with its cosine to the vector in question, from −1 to 1."""

    id: int
    similarity: float


def nearest_rows(
    table: np.ndarray, vector: np.ndarray, *, count: int = 10, excluded: Collection[int] = ()
) -> tuple[Neighbour, ...]:
    """Return the rows of ``table`` with the largest cosine to ``vector``, nearest first.

    cos(a, b) = a·b / (‖a‖ ‖b‖); with a row or vector of length 0 it is 0.

    Args:
        table: [vocabulary, model].
        vector: [model].
        count: Number of rows to return.
        excluded: Rows that are not considered.
    """
    if vector.shape != table.shape[1:]:
        raise ValueError(f"vector has shape {vector.shape}, but the rows of the table have shape {table.shape[1:]}")
    lengths = np.linalg.norm(table, axis=1) * np.linalg.norm(vector)
    cosines = np.divide(table @ vector, lengths, out=np.zeros(len(table), dtype=table.dtype), where=lengths > 0)
    wanted = np.ones(len(table), dtype=bool)
    wanted[list(excluded)] = False
    candidates = np.flatnonzero(wanted)
    best = candidates[np.argsort(-cosines[candidates], kind="stable")[:count]]
    return tuple(Neighbour(int(row), float(cosines[row])) for row in best)


def analogy(table: np.ndarray, a: int, b: int, c: int, *, count: int = 10) -> tuple[Neighbour, ...]:
    """Return the rows nearest to E[a] − E[b] + E[c]: "a is to b as … is to c" (Mikolov et al. 2013).

    Each row is first normalised to length 1, so that long vectors count no more than short ones (Levy & Goldberg 2014,
    3CosAdd). The three words themselves are excluded, as usual; otherwise the result would nearly always be a or c.
    """
    a_vector, b_vector, c_vector = (_unit(table[row]) for row in (a, b, c))
    return nearest_rows(table, a_vector - b_vector + c_vector, count=count, excluded={a, b, c})


def _unit(vector: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(vector)
    return vector / length if length > 0 else vector


def nearest_tokens(checkpoint: Checkpoint, stack: str, id: int, *, count: int = 12) -> tuple[Neighbour, ...]:
    """Return the rows of E with the largest cosine to row ``id``, nearest first and without ``id`` itself."""
    table = embedding_table(checkpoint, stack)
    return nearest_rows(table, table[id], count=count, excluded={id})


@dataclass(frozen=True)
class WordAnalogy:
    """The rows of E that are nearest to a − b + c.

    Attributes:
        nearest: The nearest rows of E, nearest first; those of the three words are left out.
        rank: Rank of the expected word among ``n_rows``, 1 for the nearest; 0 if none was given.
        n_rows: Number of rows that were compared.
    """

    nearest: tuple[Neighbour, ...]
    rank: int
    n_rows: int


def word_analogy(
    checkpoint: Checkpoint, stack: str, words: Sequence[str], expected: str = "", *, count: int = 12
) -> WordAnalogy:
    """Return the rows of E nearest to a − b + c, and how near the expected one is.

    Args:
        checkpoint: The model.
        stack: "encoder" or "decoder".
        words: a, b and c, of one token each.
        expected: The word that the analogy asks for, of one token.
        count: Number of nearest rows to return.
    """
    table, tokenizer = embedding_table(checkpoint, stack), checkpoint.tokenizer
    found = analogy(table, *(tokenizer.encode(word)[0] for word in words), count=len(table))
    wanted = tokenizer.encode(expected)[0] if expected else None
    rank = next((place for place, one in enumerate(found, start=1) if one.id == wanted), 0)
    return WordAnalogy(found[:count], rank, len(found))


def single_token_analogies(tokenizer: Tokenizer) -> tuple[tuple[str, str, str, str], ...]:
    """Return the ``ANALOGIES`` whose four words are single tokens here: only those have rows of their own."""
    return tuple(words for words in ANALOGIES if all(len(tokenizer.encode(word)) == 1 for word in words))


def vocabulary_labels(checkpoint: Checkpoint, stack: str) -> tuple[str, ...]:
    """Return every row of E as its token is shown, by id."""
    return tuple(map(checkpoint.tokenizer.display, range(len(embedding_table(checkpoint, stack)))))


@dataclass(frozen=True)
class Projection:
    """Projection onto principal components.

    Attributes:
        coordinates: [row, component].
        explained: Share of the total variance along each component, from 0 to 1.
    """

    coordinates: np.ndarray
    explained: tuple[float, ...]


def principal_components(table: np.ndarray, *, count: int = 2) -> Projection:
    """Project the rows of ``table``, [row, column], onto directions of largest variance (Pearson 1901).

    The rows are centred; the directions are the eigenvectors of their covariance with the largest eigenvalues, in
    float64. The sign of a direction is arbitrary; it is chosen so that its largest entry is positive, so the same table
    always gives the same figure. ``explained`` shows how much the figure leaves out.
    """
    if not 1 <= count <= table.shape[1]:
        raise ValueError(f"count is {count}, but the rows have {table.shape[1]} columns; choose 1 to {table.shape[1]}")
    centred = table.astype(np.float64) - table.mean(axis=0, dtype=np.float64)
    eigenvalues, eigenvectors = np.linalg.eigh(centred.T @ centred)
    directions = eigenvectors[:, ::-1][:, :count]
    largest = np.abs(directions).argmax(axis=0)
    directions = directions * np.sign(directions[largest, np.arange(count)])
    whole = float(eigenvalues.clip(min=0).sum())
    shares = tuple(float(value) / whole if whole else 0.0 for value in eigenvalues[::-1][:count].clip(min=0))
    return Projection((centred @ directions).astype(np.float32), shares)


def vocabulary_map(checkpoint: Checkpoint, stack: str) -> Projection:
    """Return all rows of E in the plane of their first two principal components; this may take seconds."""
    return principal_components(embedding_table(checkpoint, stack))


def pooled_tokens(trace: Trace) -> np.ndarray:
    """Return w ⊙ h, [token, model], in float64; its sum over tokens is the vector of the sentence."""
    last = f"encoder.layers.{trace.n_layers('encoder') - 1}.residual.out"
    name = "encoder.final_norm.output" if "encoder.final_norm.output" in trace else last
    hidden = trace.values(name).astype(np.float64)
    real = np.array([not token.is_padding for token in trace.tokens("encoder")])
    weight = np.zeros_like(hidden)
    kind = trace.checkpoint.config.pooling
    if kind == "mean":
        weight[real] = 1 / real.sum()
    elif kind == "first":
        weight[0] = 1
    else:
        best = np.where(real[:, None], hidden, -np.inf).argmax(axis=0)
        weight[best, np.arange(hidden.shape[1])] = 1
    return weight * hidden


def parts_of_cosine(first: Trace, second: Trace) -> np.ndarray:
    """Return what each pair of tokens adds to the cosine: [token of ``first``, token of ``second``]."""
    one, other = pooled_tokens(first), pooled_tokens(second)
    return one @ other.T / (np.linalg.norm(one.sum(axis=0)) * np.linalg.norm(other.sum(axis=0)))
