"""Whether heads that have a role over many sentences matter more for one output."""

from typing import NamedTuple

import numpy as np

from transformer.attribution.attention_trust import spearman
from transformer.heads.head_roles import CorpusRoles
from transformer.interventions.head_importance import Importance


class RolesAgainstImportance(NamedTuple):
    """How the roles of heads agree with the effect of removing them.

    Attributes:
        agreement: Spearman's ρ of the strength of a head's role and the KL divergence without the head.
        with_role, without: Mean KL divergence of heads with and without a role, in nats; NaN if there are none.
    """

    agreement: float
    with_role: float
    without: float


def roles_against_importance(roles: CorpusRoles, found: Importance) -> RolesAgainstImportance:
    """Compare the strongest role of each head over many sentences with the effect of removing it here."""
    places = [(one.place.stack, one.place.kind, one.place.layer, one.place.head) for one in found.measured]
    measured = [roles.head(*place) for place in places]
    changes = np.array([one.kl for one in found.measured])
    has_role = np.array([one.has_role for one in measured], dtype=bool)
    means = [float(changes[which].mean()) if which.any() else float("nan") for which in (has_role, ~has_role)]
    return RolesAgainstImportance(spearman(np.array([one.strength for one in measured]), changes), *means)
