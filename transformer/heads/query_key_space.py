"""Queries and keys of one head as points of one space (AttentionViz, Yeh et al. 2023, §4).

A score is a product, not a distance. But a softmax ignores what is the same for all keys of a query, so all keys may be
moved by one vector; and q · k is unchanged if queries are multiplied by what keys are divided by. With

    q′ = r √scale · q,        k′ = √scale / r · (k − k̄) + q̄′,        r² = mean‖k − k̄‖ / mean‖q‖

both clouds have the same centre and similar lengths, q′ · k′ is the score up to a number that is the same for all keys
of a query, and ‖q′ − k′‖² = ‖q′‖² + ‖k′‖² − 2 q′ · k′ is small where the score is large. The figure shows the plane of
the first two principal components of all points together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transformer.attribution.attention_trust import spearman
from transformer.files.checkpoints import Checkpoint
from transformer.files.once import once
from transformer.heads.firing_examples import ROWS, Progress, head_rows, read_batches
from transformer.layers.embedding_space import Projection, principal_components
from transformer.runs.head_places import Head
from transformer.runs.readings import BATCH_SIZE
from transformer.text.tokens import Token

MAX_TOKENS = 1500  # queries and keys together; more is a cloud without readable words


@dataclass(frozen=True, eq=False)
class Points:
    """``vectors``, [point, channel], with their ``tokens`` and the ``sentences`` that these are in."""

    vectors: np.ndarray
    tokens: tuple[Token, ...]
    sentences: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class QueryKeySpace:
    """q′ and k′ of one ``head``.

    ``agreement`` is Spearman's ρ between the score and the closeness in the figure of the allowed keys, averaged over
    the queries with at least three; NaN if there is none.
    """

    head: Head
    queries: Points
    keys: Points
    agreement: float

    @once
    def picture(self) -> Projection:
        """Return the coordinates of all queries, then of all keys: [point, 2]."""
        return _picture(self.queries.vectors, self.keys.vectors)


def query_key_space(
    checkpoint: Checkpoint,
    sentences: Sequence[str],
    head: Head,
    *,
    most: int = MAX_TOKENS,
    batch_size: int = BATCH_SIZE,
    progress: Progress | None = None,
) -> QueryKeySpace:
    """Read the sentences in order until there are ``most`` queries and keys together.

    What a model adds to its products (relative positions), or a cap on them, is not part of the vectors and not in the
    figure; rotary positions are. For ``progress`` and errors see ``head_firings``.
    """
    stack, kind, layer, _ = head
    name = f"{stack}.layers.{layer}.{kind}_attention"
    found: dict[int, tuple] = {}
    for batch in read_batches(
        checkpoint, sentences, batch_size=batch_size, parts=(*ROWS, "query", "key"), progress=progress
    ):
        parts = {part: batch.recording.tensors[f"{name}.{part}"][:, head.head] for part in ("query", "key")}
        for row, index in enumerate(batch.indices):
            asked, read, _, allowed = head_rows(batch, stack, kind, layer, row)
            own = (parts["query"][row, : len(asked)], parts["key"][row, : len(read)])
            found[index] = (asked, read, *(part.double().numpy(force=True) for part in own), allowed)
    kept: list[int] = []
    for index in sorted(found):
        if kept and sum(len(found[one][0]) + len(found[one][1]) for one in (*kept, index)) > most:
            break
        kept.append(index)
    queries, keys = (
        Points(
            np.concatenate([found[index][2 + side] for index in kept]),
            tuple(token for index in kept for token in found[index][side]),
            tuple(index for index in kept for _ in found[index][side]),
        )
        for side in (0, 1)
    )
    scale = checkpoint.model.get_submodule(name).scale
    moved, shifted = _to_one_space(queries.vectors, keys.vectors, scale)
    agreement = _agreement(moved, shifted, [(found[index][4]) for index in kept])
    return QueryKeySpace(
        head,
        Points(moved, queries.tokens, queries.sentences),
        Points(shifted, keys.tokens, keys.sentences),
        agreement,
    )


def _to_one_space(queries: np.ndarray, keys: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    centred = keys - keys.mean(axis=0)
    lengths = [float(np.linalg.norm(rows, axis=1).mean()) for rows in (centred, queries)]
    ratio = np.sqrt(lengths[0] / lengths[1]) if all(lengths) else 1.0
    moved = queries * np.sqrt(scale) * ratio
    return moved, centred * np.sqrt(scale) / ratio + moved.mean(axis=0)


def _picture(queries: np.ndarray, keys: np.ndarray) -> Projection:
    return principal_components(np.concatenate((queries, keys)))


def _agreement(queries: np.ndarray, keys: np.ndarray, allowed: Sequence[np.ndarray]) -> float:
    """Return the agreement; ``allowed`` is [query, key] for every sentence."""
    places = _picture(queries, keys).coordinates
    drawn_queries, drawn_keys = places[: len(queries)], places[len(queries) :]
    first_query = first_key = 0
    found = []
    for may in allowed:
        for query, row in enumerate(may, start=first_query):
            own = first_key + np.nonzero(row)[0]
            if len(own) >= 3:
                distance = np.linalg.norm(drawn_keys[own] - drawn_queries[query], axis=1)
                found.append(spearman(keys[own] @ queries[query], -distance))
        first_query, first_key = first_query + may.shape[0], first_key + may.shape[1]
    return float(np.nanmean(found)) if np.isfinite(found).any() else float("nan")
