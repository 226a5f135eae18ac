"""The curves of a training run: loss, score and learning rate over its steps."""

import math
from typing import TYPE_CHECKING

import streamlit as st

from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from transformer.errors import CheckpointError
from transformer.files.model_card import began_as
from transformer.text.message import N_
from transformer.training.recipe import Recipe
from transformer.training.schedule import learning_rate
from ui.compute.loading import load_history, recipe_of
from ui.shell.page import Page
from ui.shell.selectors import work_of
from ui.show.figures import show_figure, show_formula, show_source, show_table
from ui.words.catalogues import translate
from ui.words.texts import PageText, as_plain
from views.training.curve_figures import loss_curves, rate_curve, score_curve

if TYPE_CHECKING:
    import pandas as pd

# Columns of history.csv, marked for translation.
HEADINGS = (
    *(N_("training step"), N_("epoch"), N_("target_tokens"), N_("seconds"), N_("learning_rate"), N_("train_loss")),
    *(N_("gradient_norm"), N_("dev_loss"), N_("dev_perplexity"), N_("dev_score")),
    N_("heads with a role"),
)
_SHOWN = {"step": "training step", "heads_with_job": "heads with a role"}  # files keep their names
SCORES = {
    **{"encoder-decoder": "bleu", "decoder-only": "minus_loss", "encoder-only": "minus_loss"},
    **{"classifier": "accuracy", "text-to-text": "tasks"},
}


def curves(p: Page) -> None:
    """Draw everything in the checkpoint's ``history.csv``."""
    try:
        history = load_history(p.focus.checkpoint)
    except CheckpointError as error:
        p.nothing_to_show(as_plain(translate(error)))
    if history is None:
        p.nothing_to_show(p.text["none"])
    own = "dev_score" in history  # otherwise another program trained it
    score = p.text[SCORES[work_of(p.checkpoint.config)]]
    st.markdown(facts(history, p.text, card=p.checkpoint.card))
    loss = N_("loss (nats per example)") if p.checkpoint.config.n_classes else N_("loss (nats per token)")
    recipe = recipe_of(p.focus.checkpoint)
    packed = recipe is not None and recipe.task == "packed-next-token"
    caption = p.text["loss_packed" if packed else "loss"] if own else ""
    show_figure(loss_curves(history, loss=loss), name="training-loss", caption=caption)
    if own:
        caption = f"{p.text['score']} {p.text['score_bleu']}" if score == p.text["bleu"] else p.text["score"]
        show_figure(score_curve(history, score=score), name="training-score", caption=caption)
    if history["learning_rate"].notna().any():
        show_figure(rate_curve(history.dropna(subset="learning_rate")), name="training-rate", caption=p.text["rate"])
    outcomes = p.checkpoint.config.n_classes or p.checkpoint.config.vocabulary_size
    caption = p.text["formula_caption"].format(
        smoothing=_smoothing(p.text, recipe), vocabulary=three_digits(outcomes), guess=three_digits(math.log(outcomes))
    )
    show_formula(p.text["formula"].replace("%OUTCOMES%", str(outcomes)), caption=caption)
    show_table(history.rename(columns=_SHOWN), name="training-history", height=240)
    show_source(learning_rate)


def facts(history: "pd.DataFrame", text: PageText, *, card: str) -> str:
    """Return how long the run was, how far its dev loss fell, and what it started from."""
    last, evaluated = history.iloc[-1], history[["step", "dev_loss"]].dropna()
    steps = whole(int(last["step"]))
    if "target_tokens" in history:
        minutes, tokens = whole(round(last["seconds"] / 60)), whole(int(last["target_tokens"]))
        parts = [text["facts"].format(steps=steps, tokens=tokens, minutes=minutes)]
    else:
        parts = [text["logged"].format(steps=steps)]
    if len(evaluated) > 1 and evaluated["dev_loss"].iloc[-1] < evaluated["dev_loss"].iloc[0]:
        first, end = (three_digits(evaluated["dev_loss"].iloc[index]) for index in (0, -1))
        parts.append(text["loss_fell"].format(start=whole(int(evaluated["step"].iloc[0])), first=first, last=end))
    if origin := began_as(card):
        parts.append(text["loss_began"].format(origin=as_plain(origin)))
    return " ".join(parts)


def _smoothing(text: PageText, recipe: Recipe | None) -> str:
    """Return the sentence about label smoothing, by the recipe if it is available."""
    if recipe is None:
        return text["smoothing_unknown"]
    epsilon = recipe.label_smoothing
    return text["smoothing" if epsilon else "smoothing_none"].format(epsilon=three_digits(epsilon))
