"""How spread out a head is, and whether cross-attention moves forward: shapes of the whole map.

- "broad": entropy of a row over the largest possible, H(α_i) / log₂(number of keys allowed), mean over the rows (Clark
  et
  al. 2019, §3.3: "broad" heads). A broad head is no head with a job, so its chance level is 0 and it is named only if
  nothing else fits.
- "monotone": Kendall's τ_b between the row and its strongest key, mean over the sentences; cross-attention only.
  Chance: 0.
"""

import numpy as np

from transformer.roles.head_roles import LEAST_BROAD, LEAST_MONOTONE, monotonicity
from transformer.roles.tally import Measure, Tally, keys_allowed, word_rows
from transformer.runs.attention_view import AttentionView

_FEWEST = 3  # rows of a sentence from which an order can be told


def spread_tallies(view: AttentionView) -> dict[str, Tally]:
    rows = word_rows(view)
    shares = view.entropy[:, rows] / np.log2(keys_allowed(view)[rows])
    found = {"broad": Tally(shares.sum(axis=1)[:, None], np.zeros(1), np.array([rows.sum()]))}
    if view.kind == "cross" and rows.sum() >= _FEWEST:
        order = monotonicity(view.weights[:, rows]) * rows.sum()  # a long sentence tells more
        found["monotone"] = Tally(order[:, None], np.zeros(1), np.array([rows.sum()]))
    return found


def spread_measure(name: str, tally: Tally, head: int) -> Measure | None:
    if not tally.rows[0]:
        return None
    least = {"broad": LEAST_BROAD, "monotone": LEAST_MONOTONE}[name]
    return Measure(float(tally.shares[head, 0]), 0.0, least, int(tally.rows[0]))
