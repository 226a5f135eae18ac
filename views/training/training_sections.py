"""The sections of Training about a finished run: its curves, one sentence through training."""

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

import pandas as pd
import streamlit as st
from pandas.api.types import is_numeric_dtype

from charts.canvas.attention_maps import attention_map, predicted_rows
from charts.figures.map_strip import map_strip
from charts.figures.training_curves import loss_curves, rate_curve, repeated_loss_curve, score_curve
from charts.toolkit.numbers import whole
from charts.toolkit.style import percent_digits
from transformer.errors import CheckpointError
from transformer.files.model_card import HISTORY, checkpoint_step, had_fresh_self_attention, starting_checkpoint
from transformer.files.snapshots import snapshot, snapshot_path, snapshot_steps
from transformer.files.trainer_folder import LOGGED, trainer_history
from transformer.files.untrained import SEED, can_be_untrained, untrained
from transformer.heads.sentence_through_training import (
    Moment,
    changed_most,
    greatest_turn,
    map_change,
    moment_of,
    shared_words,
    training_steps,
)
from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import Head
from transformer.training.recipe import Recipe
from transformer.training.run_state import COLUMNS
from transformer.training.schedule import learning_rate
from ui.compute.loading import checkpoint_names, checkpoint_path, checkpoints_folder, recipe_of
from ui.page.page import Page, guard
from ui.shell import choice
from ui.shell import focus as shared_focus
from ui.shell.focus import select
from ui.shell.focus_controls import selectors, work_of
from ui.shell.fragments import fragment
from ui.shell.sentence import spaces
from ui.shell.sentence_notes import say_long_text
from ui.show.drawings import show_map
from ui.show.figures import show_figure, show_table
from ui.words.texts import Marked, PageText, as_plain, listed, page_text, page_texts, problem_text

# ---- the curves -----------------------------------------------------------------------------------------------------

SHOWN = {  # files keep their names
    "step": "training step",
    "heads_with_job": "heads with a role",
    "repeated_loss": "loss of repeated tokens",
}
SCORES = {
    **{"encoder-decoder": "bleu", "decoder-only": "minus_loss", "encoder-only": "minus_loss"},
    **{"classifier": "accuracy", "text-to-text": "tasks"},
}
_DROP, _GENTLE = 0.75, 0.9  # ratios of a learning rate to the one before


def curves(p: Page) -> None:
    """Draw everything in the checkpoint's ``history.csv``."""
    try:
        history = _history(p.focus.checkpoint)
    except CheckpointError as error:
        p.nothing_to_show(as_plain(problem_text(error)))
    if history is None:
        p.nothing_to_show(p.text["none"])
    config, recipe = p.checkpoint.config, recipe_of(p.focus.checkpoint)
    own = "dev_score" in history  # otherwise another program trained it
    st.markdown(facts(p, history, card=p.checkpoint.card))
    packed = recipe is not None and recipe.task == "packed-next-token"
    figure = loss_curves(history, loss="loss (nats per example)" if config.n_classes else "loss (nats per token)")
    show_figure(figure, name="training-loss", caption=p.md("loss_packed" if packed else "loss") if own else "")
    if own:
        score = SCORES[work_of(config)]
        caption = score_caption(p, history, kept=checkpoint_step(p.checkpoint.path), recipe=recipe)
        if score == "bleu":
            caption = f"{caption} {p.md('score_bleu')}"
        show_figure(score_curve(history, score=p.words(score)), name="training-score", caption=caption)
    if history["learning_rate"].notna().any():
        rates = history.dropna(subset="learning_rate")
        show_figure(rate_curve(rates), name="training-rate", caption=rate_caption(p, rates))
    if "repeated_loss" in history:
        losses = history[["step", "repeated_loss"]].dropna().rename(columns={"repeated_loss": "value"})
        figure = repeated_loss_curve(losses)
        show_figure(figure, name="repeated-loss-through-training", caption=p.md("roles_repeated"))
    outcomes = config.n_classes or config.vocabulary_size
    p.formula(
        p.text["formula"].replace("%OUTCOMES%", str(outcomes)),
        "formula_caption",
        smoothing=_smoothing(p, recipe),
        vocabulary=float(outcomes),
        guess=math.log(outcomes),
    )
    evaluated = history.dropna(subset=["train_loss", "dev_loss"], how="all")  # the weights of step 0 have no losses
    show_table(evaluated.rename(columns=SHOWN), name="training-history", height=240)
    p.code(learning_rate)


def _history(name: str) -> pd.DataFrame | None:
    """Return the training curves of a checkpoint, or ``None`` if there are none.

    They are its ``history.csv``, or what Hugging Face's Trainer logged, which lacks some of the columns.

    Raises:
        CheckpointError: If the file is incomplete.
    """
    path = checkpoint_path(name) / HISTORY
    if not path.is_file():
        logged = trainer_history(path.parent)
        return pd.DataFrame(logged).reindex(columns=list(LOGGED)) if logged else None
    try:
        history = pd.read_csv(path)
        is_whole = len(history) and all(is_numeric_dtype(history[column]) for column in COLUMNS)
        is_whole = is_whole and bool(history[["step", "target_tokens", "seconds"]].abs().lt(math.inf).all(axis=None))
    except (ValueError, KeyError, OSError):
        is_whole = False
    if not is_whole:
        raise CheckpointError(f"{HISTORY} of {name} is not a complete history of a training run.")
    return history


def facts(p: Page, history: pd.DataFrame, *, card: str) -> str:
    """Return how long the run was, how far its dev loss fell, and what it started from."""
    last, steps = history.iloc[-1], int(history.iloc[-1]["step"])
    said = [p.md("logged", steps=steps)]
    if "target_tokens" in history:
        said = [p.md("facts", steps=steps, tokens=int(last["target_tokens"]), minutes=round(last["seconds"] / 60))]
    evaluated = history[["step", "dev_loss"]].dropna()
    if len(evaluated) > 1 and evaluated["dev_loss"].iloc[-1] < evaluated["dev_loss"].iloc[0]:
        (start, first), (end, lowest) = (evaluated.iloc[place] for place in (0, -1))
        said.append(p.md("loss_fell", start=int(start), end=int(end), first=first, last=lowest))
    if origin := starting_checkpoint(card):
        said.append(p.md("loss_began_fresh" if had_fresh_self_attention(card) else "loss_began", origin=origin))
    return " ".join(said)


def score_caption(p: Page, history: pd.DataFrame, *, kept: int | None, recipe: Recipe | None) -> str:
    """Return what the dev score was measured on, and whether the step that was kept has the best value."""
    of_task = {"translation": "score_first", "text-to-text": "score_first_tasks"}
    key, count = ("score", 0) if recipe is None else (of_task.get(recipe.task, "score"), recipe.evaluate_sentences)
    measured = p.md(key, count=count)
    scores = history[["step", "dev_score"]].dropna()
    if kept is None or scores.empty:
        return measured
    best = scores[scores["dev_score"] == scores["dev_score"].max()]["step"].astype(int).tolist()
    return f"{measured} {p.md('score_kept_best' if kept in best else 'score_kept', kept=kept, best=best[0])}"


def rate_caption(p: Page, history: pd.DataFrame) -> str:
    """Return a text on the learning-rate schedule, and on every step at which the rate drops abruptly."""
    rates, steps = history["learning_rate"].tolist(), history["step"].astype(int).tolist()
    drops = [
        p.md("rate_dropped", before=steps[index - 1], after=steps[index])
        for index in range(1, len(rates) - 1)
        # The end of a cosine falls as steeply, but each step more so than the one before.
        if rates[index] < _DROP * rates[index - 1] and _GENTLE * rates[index] < rates[index + 1] <= rates[index]
    ]
    return " ".join((p.md("rate"), *drops))


def _smoothing(p: Page, recipe: Recipe | None) -> Marked:
    """Return the sentence about label smoothing, with the recipe's value if the recipe is available."""
    if recipe is None:
        return p.md("smoothing_unknown")
    return p.md("smoothing" if recipe.label_smoothing else "smoothing_none", epsilon=recipe.label_smoothing)


# ---- one sentence through training ----------------------------------------------------------------------------------

STEP = "training_step"
RANDOM: Literal["random"] = "random"  # the model before any training
Step = int | None | Literal["random"]
_FEW_TOKENS = 12  # that a model with random weights writes: it would go on to any limit
_MAP_HEIGHT = 440  # pixels
_LONGEST, _LINE = 100, 50  # characters of an output beside another one, and of one line of it
_RARE = 0.001  # a probability that is written as "1 in 9,300"
_LONGEST_RUN = 5  # an untrained model repeats one word; a longer run becomes "word ×25"


class Shown(NamedTuple):
    """One sentence at several steps, perhaps with random weights first, and the finished model last."""

    moments: tuple[Moment, ...]
    head: Head

    @property
    def run(self) -> tuple[Moment, ...]:
        """The steps of the run itself, without random weights if there are several."""
        steps = tuple(one for one in self.moments if not one.has_random_weights)
        return steps if len(steps) > 1 else self.moments

    def views(self, moments: Iterable[Moment]) -> list[AttentionView]:
        """Return the attention of the layer that is shown, at each of ``moments``."""
        stack, kind, layer, _ = self.head
        return [moment.view(stack, layer, kind) for moment in moments]


def time_lapse(p: Page) -> None:
    """Draw the sentence at every step with a snapshot."""
    steps = shown_steps(p)
    if not steps:
        p.nothing_to_show(_without_snapshots(p))
    if p.reads_long_text:
        p.nothing_to_show(say_long_text(p.run, "page"))
    shown = _shown(p, say=True)
    if len(shown.moments) < 2:
        p.finish()
    selectors(p.focus, p.checkpoint.config, needs=("stack", "kind", "layer", "head"), room=spaces()["beside"])
    most, moved = changed_most(shown.run)
    help = p.md("time_most_help", change=percent_digits(moved))
    icon = ":material/trending_up:"
    st.button(p.text["time_most"], icon=icon, help=help, on_click=select, kwargs=most._asdict())
    _through_time(p)
    _table(p, shown)
    p.code(map_change)
    if RANDOM in steps and len(steps) == 2:
        st.caption(_without_snapshots(p))


def shown_steps(p: Page) -> tuple[Step, ...]:
    """Return random weights, the steps of all snapshots, and the checkpoint's own step.

    A run whose first snapshot is of random weights needs no others. Without random weights or snapshots, the result is
    empty: there is nothing to compare the model with.
    """
    checkpoint, steps = p.checkpoint, training_steps(p.checkpoint)
    is_from_scratch = bool(steps) and steps[0] == 0 and starting_checkpoint(checkpoint.card) is None
    if not can_be_untrained(checkpoint) or is_from_scratch:
        return steps
    return (RANDOM, *(steps or (checkpoint_step(checkpoint.path),)))


def _without_snapshots(p: Page) -> str:
    """Return the sentence that says that there are no snapshots here and which checkpoints have some."""
    others = [name for name in checkpoint_names() if snapshot_steps(checkpoints_folder() / name)]
    return p.md("time_none") + (" " + p.md("time_others", names=listed(others)) if others else "")


def _shown(p: Page, *, say: bool = False) -> Shown:
    """Return the model at every step; ``say`` whether to warn about snapshots that cannot be opened."""
    steps, found = shown_steps(p), []
    for place, step in enumerate(steps):
        try:
            found.append(_moment(p, step, final=place == len(steps) - 1))
        except CheckpointError as error:
            if say:
                st.warning(p.md("time_broken", problem=problem_text(error)), icon=":material/broken_image:")
    return Shown(tuple(found), p.selected_head)


def _moment(p: Page, step: Step, *, final: bool) -> Moment:
    """Return the results of the model at ``step`` on the tokens of the trace.

    Raises:
        CheckpointError: For a snapshot that is broken.
    """
    shows = {"name": f"at_{step}", "shows": (".text", ".log_probability"), "wait": "wait.again"}
    if step == RANDOM:
        model = p.calc(untrained, p.checkpoint, name="random")
        return p.calc(moment_of, model, None, p.trace, max_new_tokens=_FEW_TOKENS, **shows)
    if final:
        return p.calc(moment_of, p.checkpoint, step, p.trace, **shows)
    file = snapshot_path(p.checkpoint.path, step)
    model = p.calc(snapshot, p.checkpoint, step, name=f"model_{step}", reads=file)
    return p.calc(moment_of, model, step, p.trace, **shows)


@fragment
def _through_time(p: Page) -> None:
    """Draw everything that depends on the slider, which redraws only this."""
    with guard():
        if shared_focus.current() != p.focus:  # a head was clicked in the figure below, so the whole page reruns
            st.rerun()
        shown, card = _shown(p), p.checkpoint.card
        names = step_names(shown.moments, p.text, card=card)
        outputs = st.container(border=True, horizontal=True, gap="medium", key="training outputs")
        st.markdown(story(p, shown))
        here = _choose(p, shown.moments, names)
        moment, final, views = shown.moments[here], shown.moments[-1], shown.views(shown.moments)
        with outputs:
            for title, one, other in (("time_answer", moment, final), ("time_answer_final", final, moment)):
                _output(p, title, one, other)
        figure = map_strip(
            views,
            head=shown.head.head,
            names=[step_name(moment, p.text) for moment in shown.moments],
            chosen=here,
        )
        show_figure(figure, name="one-head-through-training", caption=p.md("time_strip", read=_read(p)))
        p.say("time_map_random" if moment.has_random_weights else "time_map", step=names[here])
        rows = predicted_rows(p.trace, shown.head.kind)
        drawn = attention_map(views[here], head=shown.head.head, shifted_labels=rows, height=_MAP_HEIGHT)
        show_map(drawn, key="time-lapse map")
        if shown.moments[0].has_random_weights:
            origin = starting_checkpoint(card)
            p.say("early_seed_continued" if origin else "early_seed", small=True, seed=str(SEED), origin=origin)


def _read(p: Page) -> Marked:
    """Return the phrase for what every step reads."""
    if not p.checkpoint.config.has_decoder:
        return p.md("time_read_sentence")
    return p.md("time_read_given" if p.trace.forced else "time_read_final")


def _choose(p: Page, moments: Sequence[Moment], names: list[str]) -> int:
    """Draw the slider; return an index into ``names``. A step of another checkpoint is forgotten."""
    in_all = zip(*(step_names(moments, text, card=p.checkpoint.card) for text in page_texts(p.name)), strict=True)
    codes = [
        RANDOM if moment.has_random_weights else "last" if moment.step is None else str(moment.step)
        for moment in moments
    ]
    called = {code: [name, *words] for code, name, words in zip(codes, names, in_all, strict=True)}
    return codes.index(choice.one_of(p.text["time_step"], called, key=STEP, in_slider=True))


def step_name(moment: Moment, text: PageText) -> str:
    """Return "1,500", "random", or "final" if the checkpoint does not record its step."""
    if moment.has_random_weights:
        return text["time_random"]
    return text["time_final"] if moment.step is None else whole(moment.step, language=text.language)


def step_names(moments: Sequence[Moment], text: PageText, *, card: str) -> list[str]:
    """Return the names on the slider; the first names the start of training, the last the final step."""
    names = [
        text["time_random_weights"] if moment.has_random_weights else step_name(moment, text) for moment in moments
    ]
    start = next((index for index, moment in enumerate(moments) if moment.step == 0), None)
    if start is not None:
        before = starting_checkpoint(card)
        names[start] = text["time_untrained"] if before is None else text["time_before"].format(name=before)
    if moments[-1].step is not None:
        names[-1] = text["time_last"].format(step=whole(moments[-1].step, language=text.language))
    return names


def _output(p: Page, title: str, moment: Moment, other: Moment) -> None:
    """Show the output at one step; the words that it has in common with the other are coloured."""
    with st.container(width="stretch", gap=None):
        p.say(title, small=True)
        cut = " …" if moment.has_random_weights and moment.is_cut else ""
        st.markdown(f"#### {marked(moment.text, other.text)}{cut}")
        if moment.n_tokens or math.isnan(moment.typed_log_probability):
            said = p.md("time_likely", probability=per_token(moment.probability))
            shares = any(shared for _, shared in shared_words(shortened(moment.text, other.text), other.text))
            st.caption(f"{said} {p.md('time_green')}" if shares else said, help=p.text["time_likely_help"])
        else:  # there is no output
            key = "early_typed" if p.checkpoint.config.has_decoder else "early_predicted"
            p.say(key, small=True, probability=per_token(math.exp(moment.typed_log_probability)))


def shortened(answer: str, other: str) -> str:
    """Return the beginning of an output that is longer than ``other``: an untrained model may never end."""
    longest = min(_LONGEST, max(_LINE, len(other)))
    return answer if len(answer) <= longest else answer[:longest].rsplit(" ", 1)[0] + " …"


def marked(answer: str, other: str) -> str:
    """Return ``answer`` as Markdown, words shared with ``other`` in green, long repetitions counted."""
    written = ""
    for word, run in groupby(shared_words(answer, other), key=lambda piece: piece[0].lstrip()):
        pieces = list(run)
        shown = f":green[{as_plain(word)}]" if any(shared for _, shared in pieces) else as_plain(word)
        spaces = [" " if piece != word else "" for piece, _ in pieces]
        if len(pieces) > _LONGEST_RUN:
            written += f"{spaces[0]}{shown} :small[×{len(pieces)}]"
        else:
            written += "".join(space + shown for space in spaces)
    return written.strip() or "–"


def per_token(value: float) -> str:
    """Return a probability in percent, or as "1 in 9,300" below 0.1%: 0.0108% reads like 0.0108."""
    if math.isnan(value):
        return "–"
    if not 0 < value < _RARE:
        return percent_digits(value)
    count, text = round(1 / value), page_text("training")
    return text["early_one_in"].format(count=whole(round(count, 2 - len(str(count))), language=text.language))


def story(p: Page, shown: Shown) -> Marked:
    """Return a sentence on the two steps between which the map of one head changed most."""
    run, head = shown.run, shown.head
    later, change = greatest_turn(run, head)
    before, after = (step_name(run[place], p.text) for place in (later - 1, later))
    kind = Marked(page_text("heads")[f"kind_{head.stack}_{head.kind}"])
    name = p.md("time_head", layer=head.layer, head=head.head, kind=kind)
    return p.md("time_turn", head=name, before=before, after=after, change=percent_digits(change))


def _table(p: Page, shown: Shown) -> None:
    """Show a table of all steps with the complete outputs, and the formula of its last column."""
    views = shown.views(shown.run)
    rows = [
        {
            "step": moment.step,
            "text": " ".join(moment.text.split()),
            "log": moment.log_probability,
            "uncertainty": moment.uncertainty,
            "change": float(map_change(view, views[-1])[shown.head.head]),
        }
        for moment, view in zip(shown.run, views, strict=True)
    ]
    st.subheader(p.text["time_table"], anchor=False)
    widths = {p.text["column"]["text"]: st.column_config.TextColumn(width="large")}
    p.table(rows, name="through-training", caption=p.md("time_table_caption", read=_read(p)), column_config=widths)
    n_queries, n_keys = views[-1].allowed.shape
    p.formula(
        rf"d_t = \frac{{1}}{{n}} \sum_{{i=1}}^{{n}} \tfrac{{1}}{{2}} \sum_{{j=1}}^{{{n_keys}}} "
        r"\left|\,\alpha^{(t)}_{ij} - \alpha^{(\text{final})}_{ij}\right|",
        "time_formula",
        queries=n_queries,
        keys=n_keys,
    )
