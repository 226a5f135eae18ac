"""The learning rate as a function of the step alone, so that nothing has to be restored after a kill."""

from __future__ import annotations

import math

from transformer.training.recipe import Recipe


def learning_rate(recipe: Recipe, step: int) -> float:
    """Learning rate of ``step`` = 1, 2, …

    cosine: linear warm-up to the peak, then ½ · peak · (1 + cos π·progress) down to 0 (Loshchilov & Hutter 2017).
    paper: factor · d_model^−½ · min(step^−½, step · warmup^−3/2) (Vaswani et al. 2017, §5.3).
    """
    if recipe.schedule == "paper":
        shape = min(step**-0.5, step * recipe.warmup_steps**-1.5)
        return recipe.learning_rate * recipe.model.d_model**-0.5 * shape
    if step <= recipe.warmup_steps:
        return recipe.learning_rate * step / recipe.warmup_steps
    progress = min(1.0, (step - recipe.warmup_steps) / max(1, recipe.steps - recipe.warmup_steps))
    return 0.5 * recipe.learning_rate * (1 + math.cos(math.pi * progress))
