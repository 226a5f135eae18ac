"""The curves of a training run: loss, score and learning rate over its steps."""

import math
from typing import TYPE_CHECKING

import streamlit as st

from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from transformer.errors import CheckpointError
from transformer.files.model_card import began_as, checkpoint_step, had_fresh_self_attention
from transformer.training.recipe import Recipe
from transformer.training.schedule import learning_rate
from ui.compute.loading import load_history, recipe_of
from ui.page.page import Page
from ui.shell.selectors import work_of
from ui.show.figures import show_figure, show_formula, show_source, show_table
from ui.words.figure_texts import problem_text
from ui.words.texts import PageText, as_plain
from views.training.curve_figures import loss_curves, rate_curve, repeated_loss_curve, score_curve

if TYPE_CHECKING:
    import pandas as pd

# Columns of history.csv, marked for translation.
HEADINGS = (
    *("training step", "epoch", "target_tokens", "seconds", "learning_rate", "train_loss"),
    *("gradient_norm", "dev_loss", "dev_perplexity", "dev_score"),
    *("heads with a role", "loss of repeated tokens"),
)
_DROP, _GENTLE = 0.75, 0.9  # ratios of a learning rate to the one before
# Files keep their names.
_SHOWN = {
    "step": "training step",
    "heads_with_job": "heads with a role",
    "repeated_loss": "loss of repeated tokens",
}
SCORES = {
    **{"encoder-decoder": "bleu", "decoder-only": "minus_loss", "encoder-only": "minus_loss"},
    **{"classifier": "accuracy", "text-to-text": "tasks"},
}


def curves(p: Page) -> None:
    """Draw everything in the checkpoint's ``history.csv``."""
    try:
        history = load_history(p.focus.checkpoint)
    except CheckpointError as error:
        p.nothing_to_show(as_plain(problem_text(error)))
    if history is None:
        p.nothing_to_show(p.text["none"])
    own = "dev_score" in history  # otherwise another program trained it
    score = p.text[SCORES[work_of(p.checkpoint.config)]]
    st.markdown(facts(history, p.text, card=p.checkpoint.card))
    loss = "loss (nats per example)" if p.checkpoint.config.n_classes else "loss (nats per token)"
    recipe = recipe_of(p.focus.checkpoint)
    packed = recipe is not None and recipe.task == "packed-next-token"
    caption = p.text["loss_packed" if packed else "loss"] if own else ""
    show_figure(loss_curves(history, loss=loss), name="training-loss", caption=caption)
    if own:
        caption = score_caption(history, p.text, kept=checkpoint_step(p.checkpoint.path), recipe=recipe)
        if score == p.text["bleu"]:
            caption = f"{caption} {p.text['score_bleu']}"
        show_figure(score_curve(history, score=score), name="training-score", caption=caption)
    if history["learning_rate"].notna().any():
        rates = history.dropna(subset="learning_rate")
        show_figure(rate_curve(rates), name="training-rate", caption=rate_caption(rates, p.text))
    if "repeated_loss" in history:
        losses = history[["step", "repeated_loss"]].dropna().rename(columns={"repeated_loss": "value"})
        show_figure(
            repeated_loss_curve(losses), name="repeated-loss-through-training", caption=p.text["roles_repeated"]
        )
    outcomes = p.checkpoint.config.n_classes or p.checkpoint.config.vocabulary_size
    caption = p.text["formula_caption"].format(
        smoothing=_smoothing(p.text, recipe), vocabulary=three_digits(outcomes), guess=three_digits(math.log(outcomes))
    )
    show_formula(p.text["formula"].replace("%OUTCOMES%", str(outcomes)), caption=caption)
    evaluated = history.dropna(subset=["train_loss", "dev_loss"], how="all")  # the weights of step 0 have no losses
    show_table(evaluated.rename(columns=_SHOWN), name="training-history", height=240)
    show_source(learning_rate)


def facts(history: "pd.DataFrame", text: PageText, *, card: str) -> str:
    """Return how long the run was, how far its dev loss fell, and what it started from."""
    last, fell = history.iloc[-1], dev_losses(history)
    steps = whole(int(last["step"]))
    if "target_tokens" in history:
        minutes, tokens = whole(round(last["seconds"] / 60)), whole(int(last["target_tokens"]))
        parts = [text["facts"].format(steps=steps, tokens=tokens, minutes=minutes)]
    else:
        parts = [text["logged"].format(steps=steps)]
    if fell:
        parts.append(text["loss_fell"].format(**fell))
    if origin := began_as(card):
        began = "loss_began_fresh" if had_fresh_self_attention(card) else "loss_began"
        parts.append(text[began].format(origin=as_plain(origin)))
    return " ".join(parts)


def dev_losses(history: "pd.DataFrame") -> dict[str, str]:
    """Return the first and last dev loss with their steps, as text; nothing if the loss has not fallen."""
    evaluated = history[["step", "dev_loss"]].dropna()
    if len(evaluated) < 2 or evaluated["dev_loss"].iloc[-1] >= evaluated["dev_loss"].iloc[0]:
        return {}
    (start, end), (first, last) = ([evaluated[column].iloc[index] for index in (0, -1)] for column in evaluated)
    return {
        **{"start": whole(int(start)), "end": whole(int(end))},
        **{"first": three_digits(first), "last": three_digits(last)},
    }


def score_caption(history: "pd.DataFrame", text: PageText, *, kept: int | None, recipe: Recipe | None) -> str:
    """Return what the dev score was measured on, and whether the step that was kept has the best value."""
    of_task = {"translation": "score_first", "text-to-text": "score_first_tasks"}
    key, count = ("score", 0) if recipe is None else (of_task.get(recipe.task, "score"), recipe.evaluate_sentences)
    measured = text[key].format(count=whole(count))
    scores = history[["step", "dev_score"]].dropna()
    if kept is None or scores.empty:
        return measured
    best = scores[scores["dev_score"] == scores["dev_score"].max()]["step"].astype(int).tolist()
    said = text["score_kept_best" if kept in best else "score_kept"].format(kept=whole(kept), best=whole(best[0]))
    return f"{measured} {said}"


def rate_caption(history: "pd.DataFrame", text: PageText) -> str:
    """Return what the learning rate follows, and where it drops at once, if it does."""
    rates, steps = history["learning_rate"].tolist(), history["step"].astype(int).tolist()
    drops = [
        text["rate_dropped"].format(before=whole(steps[index - 1]), after=whole(steps[index]))
        for index in range(1, len(rates) - 1)
        # The end of a cosine falls as steeply, but each step more so than the one before.
        if rates[index] < _DROP * rates[index - 1] and _GENTLE * rates[index] < rates[index + 1] <= rates[index]
    ]
    return " ".join((text["rate"], *drops))


def _smoothing(text: PageText, recipe: Recipe | None) -> str:
    """Return the sentence about label smoothing, by the recipe if it is available."""
    if recipe is None:
        return text["smoothing_unknown"]
    epsilon = recipe.label_smoothing
    return text["smoothing" if epsilon else "smoothing_none"].format(epsilon=three_digits(epsilon))
