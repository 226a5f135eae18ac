"""Whether heads with a role matter more: the effect of removal against tests over many sentences."""

import math

import numpy as np
import streamlit as st

from charts.toolkit.style import three_digits
from transformer.attribution.attention_trust import spearman
from transformer.errors import CheckpointError
from transformer.heads.head_roles import CorpusRoles
from transformer.interventions.head_importance import Importance
from ui.compute.saved_roles import saved_roles
from ui.page.page import Page


def roles_and_importance(p: Page, found: Importance) -> None:
    """Write one line: the correlation of a head's role with the KL of removing it."""
    if not found.complete:
        return
    try:
        saved = saved_roles(p.checkpoint)
    except CheckpointError:
        saved = None
    if saved is None or not any(head.measured.measures for head in saved.roles.heads):
        st.caption(p.text["roles_unknown"])
        return
    agreement, with_role, without = map(_number, compared(saved.roles, found))
    heads = len(found.measured)
    st.caption(p.text["roles"].format(agreement=agreement, heads=heads, with_role=with_role, without=without))


def compared(roles: CorpusRoles, found: Importance) -> tuple[float, float, float]:
    """Return Spearman's ρ of strength and KL, and the mean KL of heads with and without a role."""
    measured = [
        roles.head(one.place.stack, one.place.kind, one.place.layer, one.place.head).measured for one in found.measured
    ]
    changes = np.array([one.kl for one in found.measured])
    roles_found = np.array([one.has_role for one in measured], dtype=bool)
    means = [float(changes[which].mean()) if which.any() else math.nan for which in (roles_found, ~roles_found)]
    return spearman(np.array([one.strength for one in measured]), changes), means[0], means[1]


def _number(value: float) -> str:
    return "–" if math.isnan(value) else three_digits(value)
