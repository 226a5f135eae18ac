"""What one head is worth to one answer: the probability of every token, with the head and without."""

from dataclasses import dataclass

import numpy as np

from transformer.analysis.answers.effects import ChangeOfAnswer, effect_of
from transformer.runs.edits import ablate_head
from transformer.runs.traces import Trace


@dataclass(frozen=True)
class HeadEffect(ChangeOfAnswer):
    """``displays``: the answer's tokens (or the class); ``before``, ``after``: natural log p of each, [token], with the
    head and without; ``change`` below 0: the head helped this answer.

    The answer is the one that the whole model gave; it is not written anew. Empty: the model was asked nothing.
    """

    displays: tuple[str, ...]
    before: np.ndarray
    after: np.ndarray


def head_effect(trace: Trace, stack: str, layer: int, kind: str, *, head: int) -> HeadEffect:
    """Run the model over the very tokens of ``trace`` once more, with one head zeroed.

    "Are Sixteen Heads Really Better than One?" (Michel et al. 2019, §2.3): the head's context is set to 0 before W_O.
    """
    effect = effect_of(trace, [ablate_head(stack, layer=layer, kind=kind, head=head)])
    if effect.asked.everywhere:  # a masked-token model without a blank: there is no answer that a head could help
        return HeadEffect((), np.zeros(0), np.zeros(0))
    return HeadEffect(effect.asked.displays, effect.before, effect.after)
