"""Learning rate as a function of the step alone, so that a resumed run has nothing to restore."""

import math

from transformer.training.recipe import Recipe


def learning_rate(recipe: Recipe, step: int) -> float:
    """Return the learning rate of a step, counted from 1.

    cosine: linear warm-up to the peak, then ½ · peak · (1 + cos π·progress) down to 0. With ``restart_at`` the cosine
    ends there and a second one begins at ``restart_learning_rate``, without warm-up (Loshchilov & Hutter 2017, §3).

    paper: factor · d_model^−½ · min(step^−½, step · warmup^−3/2) (Vaswani et al. 2017, §5.3).
    """
    if recipe.schedule == "paper":
        shape = min(step**-0.5, step * recipe.warmup_steps**-1.5)
        return recipe.learning_rate * recipe.model.d_model**-0.5 * shape
    if step <= recipe.warmup_steps:
        return recipe.learning_rate * step / recipe.warmup_steps
    if recipe.restart_at and step > recipe.restart_at:
        return _cosine(recipe.restart_learning_rate, step, first=recipe.restart_at, last=recipe.steps)
    return _cosine(recipe.learning_rate, step, first=recipe.warmup_steps, last=recipe.restart_at or recipe.steps)


def _cosine(peak: float, step: int, *, first: int, last: int) -> float:
    progress = min(1.0, (step - first) / max(1, last - first))
    return 0.5 * peak * (1 + math.cos(math.pi * progress))
