"""Induction in one sentence: the job that only a text shows that repeats itself.

Olsson et al. 2022, "In-context Learning and Induction Heads". ``transformer.roles.induction`` tests the same
over random lists; here the rows are those of the sentence that was typed.
"""

from dataclasses import replace

import numpy as np

from transformer.roles.head_roles import (
    LEAST_LIFT,
    LEAST_ROWS,
    LEAST_SHARE,
    HeadRole,
    counted_rows,
    head_roles,
)
from transformer.runs.attention_view import AttentionView


def sentence_roles(view: AttentionView) -> tuple[HeadRole, ...]:
    """``head_roles``, and "induction" where a head sends more to what followed the last time than to any other place.

    A head may rest in the rows of which nothing has been read before; so only the others count. It must be as clear as
    every role: ``LEAST_SHARE``, ``LEAST_LIFT`` and ``LEAST_ROWS`` of ``head_roles``.
    """
    roles = head_roles(view)
    followers = _followers(view)
    rows = followers.any(axis=1) & counted_rows(view)
    if rows.sum() < LEAST_ROWS:
        return roles
    shares = (view.weights * followers).sum(axis=-1)[:, rows].mean(axis=1)  # [head]
    evenly = view.allowed / np.maximum(view.allowed.sum(axis=1, keepdims=True), 1)
    least = max(LEAST_SHARE, LEAST_LIFT * float((evenly * followers).sum(axis=-1)[rows].mean()))
    found = []
    for role, share in zip(roles, shares.tolist(), strict=True):
        clear = share >= least and not share <= role.score  # a role without a score, "none", is no rival
        found.append(
            replace(role, role="induction" if clear else role.role, scores={**role.scores, "induction": share})
        )
    return tuple(found)


def _followers(view: AttentionView) -> np.ndarray:
    """[query, key], ``True`` for the tokens that stand behind an earlier token like the query, where a mask hides what
    comes later; nowhere else: who reads both sides needs no memory of the last time."""
    n_queries, n_keys = view.allowed.shape
    followers = np.zeros((n_queries, n_keys), dtype=bool)
    if view.kind != "self" or np.triu(view.allowed, 1).any():
        return followers
    ids = np.array(view.key.ids)
    special = np.array([token.special for token in view.query], dtype=bool)
    followers[:, 1:] = (ids[:, None] == ids[None, :-1]) & ~special[:, None]
    return followers & view.allowed & np.tri(n_queries, n_keys, dtype=bool)
