"""The question of a case and its symptoms, without naming the bug: outputs, one head, curves."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from charts.canvas.attention_maps import attention_map, predicted_rows
from charts.toolkit.head_names import head_name
from charts.toolkit.numbers import percent
from charts.toolkit.style import three_digits
from charts.toolkit.words import _
from transformer.predictions.comparison import word_diff
from ui.lab import shown_head
from ui.lab.effects import mark
from ui.lab.uncertain_output import uncertain_output
from ui.shell.page import Page
from ui.shell.presentation.presenter import is_presenting
from ui.show.drawings import show_map
from ui.show.figures import show_figure, show_table
from ui.words.texts import as_plain, common, quoted_word, token_name
from views.bugs.bugs_view_model import WORDS, CheckpointCase, TrainingCase
from views.bugs.two_curves_figure import two_curves

HEIGHT, PRESENTED_HEIGHT = 225, 160
_LONGEST = 80  # characters of an output: a model with a bug may repeat one word endlessly


def show_question(p: Page, case: CheckpointCase | TrainingCase) -> None:
    """Ask which bug it is, after one sentence about the output of this case."""
    suspect = p.text["suspect_training" if isinstance(case, TrainingCase) else "suspect"]
    st.markdown(f"##### {suspect} {_symptom(p, case)} :primary[{p.text['ask']}]")


def show_outputs(p: Page, case: CheckpointCase | TrainingCase) -> None:
    """Draw both outputs side by side; none where nothing is predicted."""
    if case.symptom.kind == "unasked":
        return
    before, after = [_shortened(text) for text in case.outputs]
    words = as_plain(after)
    if after != before and isinstance(case, CheckpointCase):
        words = "".join(mark(piece) for piece in word_diff(before, after) if piece.fate != "removed").strip() or words
    notes, names = ["", ""], _names(p)
    if isinstance(case, CheckpointCase) and uncertain_output(p) is not None:
        names = (p.text["healthy_unsure"], names[1])
    if isinstance(case, TrainingCase):
        notes = [p.text["copies"].format(word=WORDS[0])] * 2
    elif case.probabilities:
        notes = [p.text["sure"].format(probability=three_digits(one)) for one in case.probabilities]
    with st.container(border=True, horizontal=True, key="bug outputs", gap="medium"):
        for name, shown, note in zip(names, (as_plain(before), words), notes, strict=True):
            with st.container(gap=None, width="stretch"):
                st.caption(" · ".join(filter(None, (name, note))))
                st.markdown(f"##### {shown or common('effect.empty')}")


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _symptom(p: Page, case: CheckpointCase | TrainingCase) -> str:
    symptom, chances = case.symptom, None if isinstance(case, TrainingCase) else case.probabilities
    if symptom.kind == "same" and chances and three_digits(chances[0]) != three_digits(chances[1]):
        return p.text["symptom_probability"]
    words = {"word": as_plain(_shortened(symptom.word)), "expected": as_plain(symptom.expected)}
    return p.text[f"symptom_{symptom.kind}"].format(**words)


def _says_the_maps(p: Page, case: CheckpointCase | TrainingCase) -> tuple[str, str]:
    """Return one sentence about each map: where the row that differs most clearly looks."""
    text, shift = p.text, case.shift
    if shift is not None:
        row = "predicting" if isinstance(case, CheckpointCase) and case.location.kind == "cross" else "reading"
        query = _visibly(shift.query)
        after = "case_even" if case.looks_everywhere else f"case_{row}"
        return (
            text[f"map_{row}"].format(query=query, key=_visibly(shift.before)),
            text[after].format(query=query, key=_visibly(shift.after)),
        )
    if case.share_moved > 0.005:
        return text["map_unlike"], text["case_moved"].format(share=percent(case.share_moved))
    return text["map_unlike"], text["case_alike"]


def _visibly(label: str) -> str:
    """Return a token's name in a sentence, where a bare full stop would be hard to see."""
    return token_name(label) if any(letter.isalnum() for letter in label) else as_plain(quoted_word(label))


def show_figures(p: Page, case: CheckpointCase | TrainingCase) -> None:
    """Draw the maps of one head on one scale, and two curves."""
    _two_maps(p, case)
    if isinstance(case, TrainingCase):
        _of_training(p, case)
    else:
        _of_checkpoint(p, case)


def _of_checkpoint(p: Page, case: CheckpointCase) -> None:
    text, (original, changed) = p.text, case.signs
    st.markdown(text["about_checkpoint"].format(name=as_plain(p.checkpoint.name)))
    with st.grid(2, min_column_width=400):
        _curves(
            p, original.entropy, changed.entropy, at=original.attentions, name="entropy-by-layer",
            caption="entropy_caption", title=_("entropy in bits"), across=_("attention of layer"),
        )  # fmt: skip
        _curves(
            p, original.size, changed.size, at=original.stages, name="stream-by-layer",
            caption="stream_caption", title=_("standard deviation"), across=_("residual stream after layer"),
        )  # fmt: skip


def _of_training(p: Page, case: TrainingCase) -> None:
    text = p.text
    st.caption(text["training_maps"])
    st.markdown(text["about_training"].format(steps=case.last.step))
    with st.grid(2, min_column_width=400):
        _curves(
            p, *case.curves("reported"), at=case.steps, name="loss-reported", caption="loss_caption",
            title=_("reported training loss"), across=_("training step"), logarithmic=True,
        )  # fmt: skip
        _curves(
            p, *case.curves("writes"), at=case.steps, name="words-written-right", caption="writes_caption",
            title=_("share of correct words"), across=_("training step"), share=True,
        )  # fmt: skip
    table = {text["column_word"]: WORDS, **dict(zip(_names(p), case.written, strict=True))}
    show_table(pd.DataFrame(table), name="words-written", caption=text["written_caption"])


def _curves(
    p: Page, original: Sequence[float], changed: Sequence[float], *, name: str, caption: str, **what: object
) -> None:
    """Draw one figure of the grid; ``caption`` is the key of its text."""
    with st.container():
        figure = two_curves(original, other=changed, names=_names(p), **what)
        show_figure(figure, name=name, caption=p.text[caption])


def _names(p: Page) -> tuple[str, str]:
    return p.text["healthy"], p.text["this_case"]


def _padding(case: CheckpointCase | TrainingCase) -> str:
    """Return how the padding of the source is displayed; "" if there is none."""
    source = None if isinstance(case, TrainingCase) else case.experiment.original.source
    return next((token.display for token in source or () if token.is_padding), "")


def _two_maps(p: Page, case: CheckpointCase | TrainingCase) -> None:
    height = PRESENTED_HEIGHT if is_presenting() else HEIGHT
    # Cross-attention rows are named after the tokens that they predict, as in the sentence above the maps.
    predicted, head = None, ""
    if isinstance(case, CheckpointCase):
        head = head_name(case.location.layer, case.head)
        predicted = predicted_rows(case.experiment.original, case.location.kind)
    cells = case.shift.cells if case.shift else (None, None)
    row = None
    if case.shift and case.looks_everywhere:  # no cell of that row stands out
        cells, row = (cells[0], None), case.shift.cells[1][0]
    pairs = zip(_names(p), _says_the_maps(p, case), case.views, cells, strict=True)
    with st.grid(2, min_column_width=330):
        for number, (name, sentence, view, cell) in enumerate(pairs):
            with st.container(gap="xsmall"):
                st.markdown(sentence)
                drawn = attention_map(
                    view,
                    head=case.head,
                    shifted_labels=predicted,
                    of_other_output=True,
                    selected=cell,
                    chosen_row=None if cell else row,
                    height=height,
                )
                show_map(drawn.with_metadata(title=" · ".join(filter(None, (name, head)))), key=f"bug map {number}")
    if padding := _padding(case):
        st.caption(p.text["why_pads"].format(padding=as_plain(padding)))
    if isinstance(case, CheckpointCase):
        shown_head.choose_head(p)
