"""One text step by step: the choice of each token, branches, and how logits become a choice.

A branch is a text in which another token was forced at some step. All branches are kept with the original, in the
session and in the address.
"""

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.canvas.figure import CanvasFigure
from charts.canvas.written_steps import StepBars, written_steps
from charts.figures.bars import Bars, Points, columns
from charts.figures.reshaping import reshaping
from charts.toolkit import style
from charts.toolkit.axes import Axis
from charts.toolkit.style import lines, three_digits
from charts.toolkit.words import say
from transformer import Decoding, Greedy, Sample, decode
from transformer.guests.read_out import read_out_of
from transformer.predictions.decoding_steps import (
    StepAttention,
    confidence,
    most_likely,
    n_forced,
    rank,
    reshape_step,
    rest_of,
    step_attention,
)
from transformer.predictions.written_text import (
    MOST_BRANCHES,
    ORIGINAL,
    Branch,
    TextScore,
    hesitant_step,
    how_chosen,
    read_branches,
    text_before,
    write_branches,
)
from transformer.runs.decoding_strategies import Strategy, reshape_logits
from transformer.runs.inputs import prompt_of
from ui.page.page import Page, guard
from ui.shell import choice, page_state
from ui.shell.choice import labels
from ui.shell.focus import is_presenting
from ui.shell.fragments import fragment
from ui.show.drawings import show_steps
from ui.show.figures import show_figure
from ui.words.model_terms import logits_formula
from ui.words.texts import as_plain, filled
from views.decoding import stepper
from views.decoding.decoding_sections import (
    choose_head,
    choose_sampling,
    choose_seed,
    given,
    layer_of,
    marked,
    of_heads,
    output_matrix,
    written,
)

SHOWN, PRESENTED = 10, 7  # candidates of a step; in a room with larger letters
_STYLE = Path(__file__).with_name("steps.css")
_BRANCHES = "branches"
_CHOSEN = "branch"  # the number of the branch, from 1
_NUMBERED = 16  # tokens up to which every bar shows its number


@dataclass(frozen=True)
class Reading:
    """The text that the reader follows.

    Attributes:
        strategy: How each token is chosen.
        decoding: The text.
        branch: The branch that it is, or ``ORIGINAL``.
        branches: All branches.
        n_given: How many of its tokens were given or forced.
        step: The step in focus, from 0.
    """

    strategy: Strategy
    decoding: Decoding = field(repr=False)
    branch: Branch
    branches: tuple[Branch, ...]
    n_given: int
    step: int

    @property
    def is_greedy(self) -> bool:
        """Whether each token is the most likely one."""
        return isinstance(self.strategy, Greedy)


def step_by_step(p: Page) -> None:
    """Draw a text, one token at a time. Another step redraws only this part."""
    st.html(_STYLE)
    _step_by_step(p)


@fragment
def _step_by_step(p: Page) -> None:
    with guard():
        drawing, how, below, live, sure = (st.container() for _ in range(5))  # the figure first, then its controls
        with how, st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
            samples, seed = _choose_strategy(p)
        sample = Sample()
        if samples:  # the sliders change the text itself here, not only the lower figure
            with live:
                sliders, bars = _sliders_and_bars(p)
            with sliders:
                sample = choose_sampling(p, seed)
        branches, branch = _current(p)
        asked = stepper.asked(text=identity(p, branch))
        with below:
            kind, head = _choose_attention(p)
        text = _read(p, sample if samples else Greedy(), branches, branch, asked)
        stepper.settle(text.step, text=identity(p, branch))
        with drawing, st.container(gap="xsmall"):
            with st.container(key="step figure"):
                show_steps(_figure(p, text, kind, head), key=stepper.KEY, on_stop=stepper.rest_at)
            p.say(f"walk_caption.{kind}", small=True)
        with below:
            _show_text(p, text)
        if samples:
            with bars:
                _show_reshaping(p, text, sample)
        else:
            with live:
                _live(p, branch, text.step)
        with sure:
            st.subheader(p.text["confidence"], anchor=False)
            _show_confidence(p, text)
            p.code(decode, reshape_logits)


@fragment
def _live(p: Page, branch: Branch, step: int) -> None:
    """Draw the sliders and bars of one step; they do not change greedy text, so nothing else is redrawn."""
    with guard():
        sliders, bars = _sliders_and_bars(p)
        with sliders:
            sample = choose_sampling(p)
        with bars:
            _show_reshaping(p, _read(p, Greedy(), (), branch, step), sample)


def _sliders_and_bars(p: Page) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Draw the sliders under their heading, side by side, so that their effect stays visible."""
    st.subheader(p.text["reshape"], anchor=False)
    sliders, bars = st.columns([2, 7], gap="medium")
    return sliders, bars


def _choose_strategy(p: Page) -> tuple[bool, int]:
    """Draw the choice between greedy and sampling; return whether it samples, and the seed."""
    look = {"help": p.text["strategy_help"], "wrap": True, "label_visibility": labels()}
    with st.container(horizontal=True, vertical_alignment="bottom", width="content"):
        samples = p.option("strategy", ("greedy", "sampling"), key="strategy", **look) == "sampling"
        return samples, choose_seed(p, width=150) if samples else 0


def _choose_attention(p: Page) -> tuple[str, int | None]:
    """Draw the choice of kind and heads of the attention of a step."""
    with st.container(horizontal=True):
        kind = "self"
        if p.checkpoint.config.has_encoder:
            kind = p.option("attention_kind", ("cross", "self"), key="attention_kind")
        return kind, choose_head(p)


def _read(p: Page, strategy: Strategy, branches: tuple[Branch, ...], branch: Branch, asked: int | None) -> Reading:
    """Return the text of a branch at the step that was asked for, or where the model hesitates most."""
    decoding = _text_of(p, strategy, branch)
    n_given = len(branch.forced) or n_forced(p.checkpoint, given(p), p.run.sentence)
    if asked is None:
        asked = 0 if p.focus.lesson else hesitant_step(decoding, n_given=n_given)  # a lesson begins at the beginning
    return Reading(strategy, decoding, branch, branches, n_given, min(asked, len(decoding.tokens) - 1))


def _text_of(p: Page, strategy: Strategy, branch: Branch) -> Decoding:
    return written(p, strategy, name="text" if branch == ORIGINAL else "branch", forced=branch.forced)


# ---- the steps ------------------------------------------------------------------------------------------------------


def _figure(p: Page, text: Reading, kind: str, head: int | None) -> CanvasFigure:
    """Draw everything that belongs to the steps, which is sent to the browser in one message."""
    decoding, sentence, layer = text.decoding, p.run.sentence, layer_of(p)
    prompt = tuple(prompt_of(p.checkpoint, sentence))
    place = {"layer": layer, "kind": kind, "prompt": prompt}
    steps = range(len(decoding.steps))
    seen = [step_attention(p.checkpoint, decoding, sentence, step=step, **place) for step in steps]
    return written_steps(
        [_bars(p, text, step, seen[step], head) for step in steps],
        tokens=decoding.tokens,
        key=seen[-1].key,
        of=of_heads(p, layer, head),
        before=p.checkpoint.tokenizer.sequence(prompt),
        n_given=text.n_given,
        begin=stepper.begin(),
    )


def _bars(p: Page, text: Reading, index: int, seen: StepAttention, head: int | None) -> StepBars:
    """Return the sentence about one step, and its bars."""
    step, shown = text.decoding.steps[index], PRESENTED if is_presenting() else SHOWN
    candidates = most_likely(step, shown=shown)
    before = text_before(p.checkpoint, text.decoding, p.run.sentence, index)
    values = {
        "place": p.words("after", text=before) if before else p.words("at_beginning"),
        "token": step.chosen.display,
        "best": candidates[0].display,
        "best_probability": candidates[0].probability,
        "probability": step.chosen.probability,
        "chance": step.chosen.chance,
        "rank": rank(step),
    }
    chosen = {"n_given": text.n_given, "branch": text.branch, "greedy": text.is_greedy}
    said = p.text["comes"][how_chosen(p.checkpoint, text.decoding, index, **chosen)]
    return StepBars(
        said=tuple([filled(piece, values, markdown=False) for piece in said.split("**")]),
        candidates=tuple([candidate.display for candidate in candidates]),
        probabilities=tuple([candidate.probability for candidate in candidates]),
        rest=rest_of(candidates),
        chosen=[candidate.id for candidate in candidates].index(step.chosen.id),
        weights=seen.of(head),
        allowed=seen.allowed,
        rank=rank(step),
    )


def _show_text(p: Page, text: Reading) -> None:
    """Draw the whole text and its branches."""
    decoding = text.decoding
    p.say("whole", small=True, text=decoding.text)
    if given(p) and len(decoding.steps) - decoding.finished > text.n_given:  # the model does not just end the text
        p.say("begins_forced", small=True)
    if not decoding.finished:
        p.say("unfinished", small=True, count=len(decoding.tokens))
    _force_another(p, text)
    if text.branches:
        _show_branches(p, text)


def _show_reshaping(p: Page, text: Reading, sample: Sample) -> None:
    """Draw the candidates from logits to sampling probabilities, with the formula in these shapes."""
    settings = {"temperature": sample.temperature, "top_k": sample.top_k, "top_p": sample.top_p}
    shaped = reshape_step(text.decoding.steps[text.step], **settings, shown=SHOWN)
    rules = [p.words("rule_k", k=sample.top_k)] if sample.top_k else []
    rules += [p.words("rule_p", p=sample.top_p)] if sample.top_p < 1 else []
    caption = p.md("reshape_caption", step=text.step + 1, kept=shaped.n_kept, possible=shaped.n_possible)
    caption += p.md("reshape_cut") if shaped.n_kept < shaped.n_possible else ""
    caption += p.md("reshape_greedy") if text.is_greedy else ""
    show_figure(
        reshaping(
            pd.DataFrame([asdict(row) for row in shaped.rows]),
            temperature=sample.temperature,
            rule=", ".join(rules) or p.words("rule_none"),
            given=text.step < text.n_given,
        ),
        name="from-logits-to-a-choice",
        room=440,
        caption=caption,
        alt=p.text["reshape_alt"],
    )
    config = p.checkpoint.config
    latex, matrix = output_matrix(p)
    logits = logits_formula(read_out_of(p.checkpoint.model, "decoder"), "h", latex)
    p.formula(
        p.text["formula"].replace("%LOGITS%", logits),
        "formula_caption",
        d_model=config.d_model,
        matrix=matrix,
        vocabulary=config.vocabulary_size,
        possible=shaped.n_possible,
        temperature=sample.temperature,
        kept=shaped.n_kept,
    )


def _show_confidence(p: Page, text: Reading) -> None:
    """Draw the probability of every token of the output at its step."""
    sure, whole = confidence(text.decoding), p.md("confidence_step", step=text.step + 1)
    score = TextScore.of(text.decoding)
    colours = [style.CHOSEN if place == text.step else style.BAR for place in range(len(sure.probability))]
    written = style.three_digits_alike(sure.probability) if len(colours) <= _NUMBERED else ()
    hover = say("decoding.step_token", step="%{x:d}", token="%{x}")
    drawn = [
        Bars(
            sure.probability, lines(hover, say("names.probability")), say("decoding.chosen_token"), colours,
            texts=written,
        ),
        Points(
            sure.runner_up, lines(say("decoding.other_token"), say("names.probability")),
            say("decoding.the_other_token"), style.CATEGORICAL[1], symbol="line-ew", size=26,
        ),
    ]  # fmt: skip
    along, up = Axis(say("decoding.output_axis"), text.decoding.tokens.displays), say("decoding.step_probability")
    show_figure(
        columns(drawn, along=along, up=up, limits=(0, 1.15), height=250),  # with space for the number of a bar of 1
        name="confidence",
        caption=whole
        + p.md(
            "confidence_caption",
            sum=score.total,
            whole=float(sure.probability.prod()),
            typical=math.exp(score.each),
        ),
        alt=p.text["confidence_alt"],
    )


# ---- branches -------------------------------------------------------------------------------------------------------


def identity(p: Page, branch: Branch = ORIGINAL) -> tuple:
    """Return what distinguishes one text from another, for the stepper: the focus without a branch."""
    return _identity((p.focus.checkpoint, p.sentence, given(p), p.run.source_pads), branch)


def _identity(text: tuple, branch: Branch) -> tuple:
    return text if branch == ORIGINAL else (*text, branch.forced)


def _current(p: Page) -> tuple[tuple[Branch, ...], Branch]:
    """Return all branches of the focused text, and the one that is shown (``ORIGINAL``: none)."""
    for key in (_BRANCHES, _CHOSEN):
        page_state.belongs_to(key, identity(p))
    branches = read_branches(choice.value(_BRANCHES), p.checkpoint)
    choice.correct(_BRANCHES, tuple(filter(None, [write_branches(branches)])))
    numbers = {0: [], **{number: [] for number in range(1, len(branches) + 1)}}
    chosen = choice.read_option(_CHOSEN, numbers, 0)
    return branches, branches[chosen - 1] if chosen else ORIGINAL


def _force_another(p: Page, text: Reading) -> None:
    """Draw the choice of a candidate of this step, or of any other word, from which decoding continues."""
    here, kept, known = text.decoding.steps[text.step], text.decoding.tokens.ids[: text.step], text.branches
    candidates = [one for one in here.candidates if one.id != here.chosen.id]
    others = {f"{one.display}  {three_digits(one.probability)}": one.id for one in candidates}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        asked = st.selectbox(
            p.md("force", step=text.step + 1, token=here.chosen.display),
            list(others),
            index=None,
            key=f"force instead of {(*identity(p), *kept, here.chosen.id)}",
            placeholder=p.text["force_placeholder"],
            accept_new_options=True,
            help=p.text["force_help"],
            width=420,
        )
        word = (others[asked],) if asked in others else p.word_ids(asked or "")
        st.button(
            p.text["force_go"],
            icon=":material/call_split:",
            key="force go",
            disabled=not word or len(known) >= MOST_BRANCHES,
            on_click=_add,
            args=(identity(p), known, Branch(kept, word)),
        )
    if len(known) >= MOST_BRANCHES:
        p.say("branches_full", small=True, count=MOST_BRANCHES)


def _show_branches(p: Page, text: Reading) -> None:
    """Draw the original and all branches: the forced token, the text, and its log-probability."""
    known = text.branches
    original = _text_of(p, text.strategy, ORIGINAL)
    chosen = known.index(text.branch) + 1 if text.branch in known else 0
    st.markdown(f"**{p.md('branches')}**")
    with st.container(border=True, gap="xsmall", key="branches"):
        for index, branch in enumerate((ORIGINAL, *known)):
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                decoding = _text_of(p, text.strategy, branch)
                _look(p, index, branch, is_chosen=branch == text.branch)
                score = TextScore.of(decoding)
                numbers = {"sum": score.total, "count": score.count, "typical": score.each}
                with st.container(width="stretch", gap=None):
                    if branch == ORIGINAL:
                        st.markdown(as_plain(decoding.text) or "–")
                        p.say("branch_numbers_original", small=True, **numbers)
                        continue
                    st.markdown(marked(original.text, decoding.text) or "–")
                    p.say("branch_numbers", small=True, change=score.total - original.log_probability, **numbers)
                st.button(
                    p.text["branch_remove"],
                    icon=":material/close:",
                    type="tertiary",
                    key=f"remove branch {index}",
                    on_click=_remove,
                    args=(identity(p), known, chosen, index),
                )
    p.say("branches_caption", small=True)


def _look(p: Page, index: int, branch: Branch, *, is_chosen: bool) -> None:
    word = "".join(p.checkpoint.tokenizer.display(id) for id in branch.word)
    st.button(
        p.md("branch_original") if branch == ORIGINAL else p.md("branch", step=len(branch.kept) + 1, word=word),
        type="primary" if is_chosen else "secondary",
        key=f"look at branch {index}",
        on_click=_go_to,
        args=(identity(p), index, branch),
        width=210,
    )


def _add(text: tuple, branches: tuple[Branch, ...], branch: Branch) -> None:
    if branch not in branches:
        branches = (*branches, branch)
        choice.put(_BRANCHES, write_branches(branches), owner=text)
    _go_to(text, branches.index(branch) + 1, branch)


def _go_to(text: tuple, index: int, branch: Branch) -> None:
    choice.put(_CHOSEN, *([index] if index else []), owner=text)
    stepper.move_to(len(branch.kept), text=_identity(text, branch))


def _remove(text: tuple, branches: tuple[Branch, ...], chosen: int, index: int) -> None:
    """Forget a branch; ``chosen``: the number of the one that is shown, 0 for the original."""
    left = branches[: index - 1] + branches[index:]
    choice.put(_BRANCHES, *([write_branches(left)] if left else []), owner=text)
    if index == chosen:
        _go_to(text, 0, ORIGINAL)
    elif index < chosen:
        choice.put(_CHOSEN, chosen - 1, owner=text)
