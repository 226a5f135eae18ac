"""The sections of Compare: two sentences on one checkpoint, and the parts of every comparison."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import streamlit as st

from charts.canvas.attention_maps import KEY_TITLE, LOOKS_AT, PREDICTING, attention_map, row_title
from charts.canvas.value_map import value_map
from charts.figures.stream_distance import stream_distance
from charts.toolkit.head_names import head_name
from charts.toolkit.numbers import number
from charts.toolkit.words import localize, say
from transformer import InputError, NotFiniteError
from transformer.interventions.activation_patching import Contrast, contrast_of
from transformer.interventions.compared_runs import (
    compared_row,
    followed_word,
    furthest_pair,
    log_p_of_text,
    swapped_words,
)
from transformer.interventions.experiment import Experiment, experiment
from transformer.layers.embedding_space import parts_of_cosine
from transformer.predictions.comparison import (
    MapDifference,
    Piece,
    compared_attention,
    difference_map,
    head_differences,
    largest_shift,
    stream_similarity,
    word_diff,
)
from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import Head
from transformer.runs.next_sentence import next_sentence
from transformer.runs.traces import Trace
from ui.page.page import Page
from ui.sections.word_swaps import suggested_sentence, take_pair
from ui.shell import choice
from ui.shell.choice import labels
from ui.shell.focus import is_at_the_opening, is_presenting, select, start_of
from ui.shell.offers import offer
from ui.shell.openings import examples_of
from ui.shell.sentence_notes import guess_language
from ui.show.drawings import Cell, show_map
from ui.show.figures import show_figure
from ui.words.model_terms import next_sentence_line
from ui.words.texts import as_plain, listed, model_sentences, plain_word, problem_text

MAP_HEIGHT, PRESENTED_HEIGHT = 300, 260
SMALLEST_SCALE = 0.05  # lower bound of the scale of difference maps, so that rounding errors stay invisible
MOST_KEYS = 14  # with more, two maps stand side by side instead of three, so that every column has its label
ROW_HEIGHT = 350  # of the one row that is drawn large
_BOTH = " / "  # between two tokens at the same place
_SECOND = "second"


class Side(NamedTuple):
    """One of the compared runs, A, B or C, with the head that is shown and its layer's attention."""

    letter: str
    trace: Trace
    head: Head
    view: AttentionView


@dataclass(frozen=True)
class Pair:
    """Two sentences on one checkpoint.

    Attributes:
        found: Sentence A compared with B; the model writes its own output for each.
        kept: Both sentences read with the output of A; an error if that is impossible because their lengths differ.
        sides: A and B, each with the head that is shown.
        rows: The row of that head in A and in B in which it attends to the replaced word, if there is one.
    """

    found: Experiment
    kept: Contrast | InputError
    sides: tuple[Side, Side]
    rows: tuple[int, int] | None


def side(p: Page, letter: str, trace: Trace, head: Head, attention: Callable = compared_attention) -> Side:
    """Return one of the runs, with the layer of a head as it is compared."""
    return Side(letter, trace, head, p.calc(attention, trace, head.stack, head.layer, head.kind, name="view"))


# ---- the head that is shown -----------------------------------------------------------------------------------------


def is_chosen(p: Page) -> bool:
    """Return whether the page shows the reader's head, which it does once the reader has chosen one."""
    return p.asked("shown_head", ("most", "chosen"), key="shown_head", default=_first(p)) == "chosen"


def choose_head(p: Page) -> None:
    """Draw the control: the head that differs most, or the reader's."""
    p.option("shown_head", ("most", "chosen"), key="shown_head", default=_first(p), label_visibility="collapsed")


def _first(p: Page) -> str:
    return "most" if is_at_the_opening(p.focus) else "chosen"


def select_head(cell: Cell) -> None:
    """Show the head whose cell was clicked on a map of all heads (a callback)."""
    select(layer=cell.query, head=cell.key)
    choice.put("shown_head", "chosen")


# ---- two sentences --------------------------------------------------------------------------------------------------


def two_sentences(p: Page) -> Pair:
    """Draw the choice of sentence B; return its comparison with sentence A."""
    sentence = _second_sentence(p)
    if not sentence.strip():
        p.nothing_to_show(p.text["second_empty"])
    run = replace(p.run, sentence=sentence, target=None)
    try:
        other = p.trace_of(run)
        found = p.calc(Experiment, p.trace, other, name="found")
        kept: Contrast | InputError = _contrast(p, sentence)
    except (InputError, NotFiniteError) as error:
        st.warning(p.md("second_wrong", message=problem_text(error)), icon=":material/edit:")
        p.finish()
    head, rows = p.selected_head, None
    followed = p.calc(followed_word, found, kept.most_changed_turn, name="followed") if _has_turns(kept) else None
    if not is_chosen(p):
        head = followed[0] if followed else found.most_changed_head or head
    if followed and followed[0] == head:
        rows = followed[1]
    return Pair(found, kept, (side(p, "A", p.trace, head), side(p, "B", other, head)), rows)


def _contrast(p: Page, sentence: str) -> Contrast | InputError:
    """Return both sentences with the output of A, or why they cannot be read with it."""
    try:
        kept = p.calc(experiment, p.trace, sentence=sentence, keep_answer=True, name="kept")
        return p.calc(contrast_of, kept, name="contrast")
    except InputError as error:
        return error


def _has_turns(kept: Contrast | InputError) -> bool:
    return isinstance(kept, Contrast) and bool(kept.turns)


def _second_sentence(p: Page) -> str:
    """Draw the box for sentence B and the pairs that are offered; return it.

    By default, it is the partner of sentence A, there or in ``opening.toml``, or sentence A with one word changed.
    """
    task = start_of(p.sentence, p.checkpoint.framing.starts)  # the task prefix, which predefined pairs get, too
    pairs = {
        p.text["pair"][name]["label"]: (p.text["pair"][name], task + pair["first"], task + pair["second"])
        for name, pair in model_sentences()["pair"].items()
    }
    partners = {one: two for _text, *both in pairs.values() for one, two in (both, both[::-1])}
    partners |= {each.sentence: each.second for each in examples_of(p.focus.checkpoint) if each.second}
    by_itself = partners.get(p.sentence) or suggested_sentence(p) or p.sentence
    with st.container(horizontal=True, vertical_alignment="bottom"):
        more = {"help": p.text["second_help"], "label_visibility": labels()}
        second = choice.text(p.text["second"], by_itself, key=_SECOND, **more)
        shown = next((label for label, (_text, *both) in pairs.items() if {*both} == {p.sentence, second}), None)
        with st.popover(p.text["pairs"], icon=":material/format_list_bulleted:", key="compare pairs"):
            take = partial(take_pair, _SECOND, {label: both for label, (_text, *both) in pairs.items()})
            offer(p.text["pairs"], list(pairs), key="compare pair", chosen=shown, take=take, show_label=False)
    if shown and not is_presenting():
        text = pairs[shown][0]
        french = "in_french" in text and guess_language(p.trace.text) == "fr"
        st.caption(f"{text['shows']} {text['in_french']}" if french else text["shows"])
    return second


def headline(p: Page, pair: Pair) -> None:
    """Say what the swapped word changes in the output and what the head does with it; draw both outputs."""
    said = [sentence for sentence in (_outcome(p, pair), _reason(p, pair)) if sentence]
    if p.encodes_sentences:
        _cosine(p, pair)
    if said:
        st.markdown(" ".join(said))
    if not p.encodes_sentences:
        answers(p, pair.sides, [pair.found])


def _outcome(p: Page, pair: Pair) -> str:
    """Return the sentence about the swapped word and the output that changes most, or ""."""
    texts = [side.trace.sentence for side in pair.sides]
    both, swap = (pair.found.answer_before, pair.found.answer_after), swapped_words(word_diff(*texts))
    if p.encodes_sentences or swap is None or not all(answer.parts for answer in both):
        return ""
    words = {"one": swap[0], "other": swap[1], "was": both[0].probability, "now": both[1].probability}
    if p.checkpoint.config.fills_blanks:
        before, after = (listed(plain_word(part.display) for part in answer.parts) for answer in both)
        return p.md("swap.filled_same" if before == after else "swap.filled", **words, before=before, after=after)
    log_p = [log_p_of_text(side.trace) for side in pair.sides]
    if None not in log_p:
        return p.md("swap.text", **words, factor=math.exp(log_p[1] - log_p[0]))
    if both[0].text == both[1].text:
        return p.md("swap.same", **words)
    turn = pair.kept.most_changed_turn if _has_turns(pair.kept) else None
    if turn is None or not turn.corrupt < 0 <= turn.clean:
        return p.md("swap.rest", **words)
    before, after = (plain_word(pair.kept.display(id)) for id in (turn.answer, turn.other))
    return p.md("swap.word", **words, before=before, after=after)


def _reason(p: Page, pair: Pair) -> str:
    """Return the sentence about the head: that it looks at the word, or the row that differs most."""
    side = pair.sides[0]
    head = head_name(side.head.layer, side.head.head)
    if pair.rows:
        return p.md("followed", head=head)
    shift = largest_shift(*(one.view for one in pair.sides), head=side.head.head)
    if shift is None:
        return ""
    other = pair.sides[1].view.query.labels[shift.cells[1][0]]
    key = "predicting" if side.head.kind == "cross" else "reading"
    same = "" if other == shift.query else "_other"
    return p.md(f"shift.{key}{same}", head=head, other=other, **shift.labels)


def _cosine(p: Page, pair: Pair) -> None:
    """Show the cosine of two sentence vectors, and the map of its parts: tokens of A × tokens of B."""
    parts = p.calc(parts_of_cosine, *(side.trace for side in pair.sides), name="parts", shows=(".sum()",))
    tokens = [side.trace.tokens("encoder") for side in pair.sides]
    row, column = divmod(int(parts.argmax()), parts.shape[1])
    names = {"one": tokens[0].displays[row], "other": tokens[1].displays[column]}
    p.say("cosine", cosine=float(parts.sum()), share=float(parts[row, column]), **names)
    show_map(
        value_map(
            parts,
            row_labels=list(tokens[0].labels),
            column_labels=list(tokens[1].labels),
            row_title="A",
            column_title="B",
            title=p.text["cosine_map"],
            value_name=p.text["cosine_value"],
            height=map_height(),
        ),
        key="compare cosine",
    )
    p.formula(
        r"\cos(u, v) = \sum_i \sum_j \frac{(w_i \odot h_i) \cdot (w^\prime_j \odot h^\prime_j)}"
        r"{\lVert u\rVert\,\lVert v\rVert}, \qquad u = \sum_i w_i \odot h_i",
        f"cosine_of.{p.checkpoint.config.pooling}",
    )


def changed_row(p: Page, pair: Pair) -> None:
    """Draw the row of the changed word, or the one that changes most, of A and of B, one above the other."""
    head, cross = pair.sides[0].head, pair.sides[0].head.kind == "cross"
    row = p.calc(compared_row, pair.found, head, pair.rows, name="row", shows=(".keys", ".weights"))
    if row is None:
        return
    labels_of_rows = [f"{letter}: {plain_word(label)}" for letter, label in zip("AB", row.queries, strict=True)]
    show_map(
        value_map(
            row.weights,
            row_labels=labels_of_rows,
            column_labels=row.keys,
            row_title=row_title(shifted=cross),
            column_title=KEY_TITLE,
            scale="sequential",
            allowed=row.known,
            limit=1.0,
            title=p.words("followed_row" if pair.rows else "changed_row", head=head_name(head.layer, head.head)),
            value_name="",
            phrase=(PREDICTING if cross else "", LOOKS_AT),
            masked_text=p.text["no_partner"],
            height=ROW_HEIGHT,
        ).with_metadata(legend=say("fixed_scale")),
        key="compare changed row",
    )


def in_which_layer(p: Page, pair: Pair) -> None:
    """Show how far the residual streams of corresponding tokens are from each other, layer by layer."""
    first, second = pair.sides
    stack = first.head.stack
    found = p.calc(stream_similarity, first.trace, second.trace, stack, name="stream", shows=(".cosine",))
    p.say(f"stream_intro.{stack}")
    if not found.alignment.pairs:
        p.say("stream_none")
        return
    caption = ""
    if furthest := furthest_pair(found):
        step, place = furthest
        numbers = {"cosine": float(found.cosine[step, place]), "start": float(found.cosine[0, place])}
        after = localize(found.steps[step]) if step else say("compare.embedding")
        caption = p.md("stream_furthest", token=found.labels[place], step=after, **numbers)
    figure = stream_distance(found.cosine, steps=found.steps, labels=found.labels, equal=found.alignment.equal)
    show_figure(figure, name="stream-distance", caption=caption, alt=p.text["stream_alt"])
    p.formula(
        r"\cos(x, x^\prime) = \frac{x \cdot x^\prime}{\|x\|\,\|x^\prime\|}",
        "stream_caption", count=len(found.steps), tokens=len(found.labels), numbers=p.checkpoint.config.d_model,
    )  # fmt: skip


# ---- parts of every comparison --------------------------------------------------------------------------------------


def map_height() -> int:
    """Return the height of a map in pixels."""
    return PRESENTED_HEIGHT if is_presenting() else MAP_HEIGHT


def answers(p: Page, sides: Sequence[Side], experiments: Sequence[Experiment], names: Sequence[str] = ()) -> None:
    """Draw all outputs; words that differ from A's are orange, and words of A that B lacks are blue."""
    found = [experiments[0].answer_before, *(one.answer_after for one in experiments)]
    log_p = [log_p_of_text(side.trace) for side in sides]
    columns = st.columns(len(sides), gap="small")
    for index, (side, answer) in enumerate(zip(sides, found, strict=True)):
        pieces = word_diff(found[0].text, found[index or 1].text)
        alike = index > 0 and all(piece.fate == "same" for piece in pieces)
        heading = [side.letter, *names[index : index + 1]]
        if None in log_p:
            heading += [p.text["answer_same"]] if alike else []
            heading += [p.words("answer_sure", probability=answer.probability)] if answer.parts else []
        with columns[index].container(gap=None):
            st.caption(listed(heading, " · "))
            if alike and experiments[index - 1].changed is experiments[index - 1].original:
                p.say("same_sentence", small=True)
            elif None not in log_p:
                st.markdown(f"##### {p.md('answer_text', sum=number(f'{log_p[index]:.2f}'))}")
            else:
                mark = ("added", "orange") if index else ("removed", "blue")
                st.markdown(f"##### {marked(pieces, *mark) or p.text['answer_none']}")
            if (follows := next_sentence(side.trace)) is not None:
                st.markdown(next_sentence_line(follows))
            for note in side.trace.notes:
                st.caption(f":material/info: {as_plain(localize(note))}")


def marked(pieces: tuple[Piece, ...], own: str, colour: str) -> str:
    """Return one side of a diff as Markdown; words that only this side has have a coloured background."""
    shown, begun = "", False  # whether B's text has begun, which determines the spaces
    for piece in pieces:
        first, begun = not begun, begun or piece.fate != "removed"
        if piece.fate not in ("same", own):
            continue
        apart = piece.text[:1].isspace() or (piece.fate == "same" and first)
        space = " " if apart and shown else ""
        words = as_plain(" ".join(piece.text.split()))
        shown += space + (words if piece.fate == "same" else f":{colour}-background[{words}]")
    return shown


def maps(p: Page, sides: Sequence[Side]) -> None:
    """Draw A's map, B's map, and their difference; with C, the differences are below the maps."""
    first, *others = sides
    st.html("<style>.st-key-compare-maps [data-testid='stColumn'] { min-width: 16rem; }</style>")
    with st.container(key="compare maps"):
        across = 3 if max(len(side.view.key) for side in sides) <= MOST_KEYS else 2
        rows = [st.columns(across, gap="small") for _row in range(math.ceil((2 + len(others)) / across))]
    columns = [column.container(gap="xsmall") for row in rows for column in row]
    for column, side in zip(columns, sides, strict=False):
        with column:
            predicted = side.view.query.labels if side.head.kind == "cross" else None
            drawn = attention_map(side.view, head=side.head.head, shifted_labels=predicted, height=map_height())
            kind, head = p.text[f"kind_{side.head.stack}_{side.head.kind}"], head_name(side.head.layer, side.head.head)
            title = p.words("map_title", side=side.letter, kind=kind, head=head)  # must fit on one line
            show_map(drawn.with_metadata(title=title), key=f"compare map {side.letter}")
    differences = [
        p.calc(difference_map, first.view, one.view, head=first.head.head, second_head=one.head.head,
               name="difference", shows=(".mean_change",))
        for one in others
    ]  # fmt: skip
    limit = max(SMALLEST_SCALE, *(float(np.abs(one.values).max()) for one in differences))
    for column, side, difference in zip(columns[len(sides) :], others, differences, strict=False):
        with column:
            _difference(p, first, side.letter, difference, limit=limit)
    _say_alignment(p, differences[0])


def _difference(p: Page, first: Side, letter: str, difference: MapDifference, *, limit: float) -> None:
    cross, some = first.head.kind == "cross", difference.known.any()
    show_map(
        value_map(
            difference.values,
            row_labels=short_labels(difference.query.labels),
            column_labels=short_labels(difference.key.labels),
            row_title=row_title(shifted=cross),
            column_title=KEY_TITLE,
            scale="diverging",
            allowed=difference.known,
            limit=limit,
            title=p.words("map_difference" if some else "map_no_cell", side=letter, change=difference.mean_change),
            value_name=f"{letter} − A",
            phrase=(PREDICTING if cross else "", LOOKS_AT),
            masked_text=p.text["no_partner"],
            height=map_height(),
        ).with_metadata(legend=""),  # the title already shows it
        key="compare map difference" + ("" if letter == "B" else f" {letter}"),
    )


def short_labels(labels: Sequence[str]) -> list[str]:
    """Return A's token with a star where B's replaces it: both names would shrink the cells."""
    return [f"{label.split(_BOTH)[0]}*" if _BOTH in label else label for label in labels]


def _say_alignment(p: Page, difference: MapDifference) -> None:
    """Say which tokens have no partner, or which replace each other."""
    sides = (difference.query, difference.key)
    alone = [label for side in sides for label, entry in zip(side.labels, side.merged, strict=True) if None in entry]
    swapped = list(dict.fromkeys(label for side in sides for label in side.labels if _BOTH in label))
    if alone:
        names = list(dict.fromkeys(alone))
        shown = [*names[:6], *(["…"] if len(names) > 6 else [])]
        p.say("unaligned", small=True, count=difference.n_unaligned, labels=listed(shown))
    elif swapped:
        p.say("replaced", small=True, pairs=listed(swapped))
    else:
        p.say("aligned", small=True)


def heads_map(
    p: Page, values: np.ndarray, *, key: str, selected: tuple[int, int] | None, on_click: Callable[[Cell], None]
) -> None:
    """Draw one number per head; ``on_click`` gets ``Cell(query=layer, key=head)``."""
    layers, heads = values.shape
    show_map(
        value_map(
            values,
            row_labels=[p.words("row_layer", layer=layer) for layer in range(layers)],
            column_labels=[p.words("column_head", head=head) for head in range(heads)],
            row_title=p.text["heads_row_title"],
            column_title=p.text["heads_column_title"],
            scale="sequential",
            selected=selected,
            title=p.text["heads_value"],
            value_name=p.text["heads_value"],
            phrase=("", ", "),
            height=min(420, 46 * layers + 110),
        ),
        key=key,
        on_click=on_click,
    )


def which_heads(p: Page, sides: Sequence[Side]) -> None:
    """Draw how much every head differs from A's; a click shows that head."""
    first, *others = sides
    for column, side in zip(st.columns(len(others)), others, strict=True):
        place = (first.head.stack, first.head.kind)
        values = p.calc(head_differences, first.trace, side.trace, *place, name="heads", shows=("",))
        if np.isnan(values).any():
            with column:
                p.say("heads_none")
            return
        order = np.argsort(-values, axis=None, kind="stable")[:3]
        places = [np.unravel_index(index, values.shape) for index in order]
        most = [p.md("heads_head", head=head_name(*map(int, at)), value=float(values[at])) for at in places]
        with column:
            if len(others) > 1:
                st.markdown(f"**{side.letter}**")
            p.say("heads_intro", largest=float(values.max()))
            if values.max() > 0:
                p.say("heads_largest", most=listed(most))
            else:
                p.say("heads_equal")
            key = "compare heads" + ("" if side.letter == "B" else f" {side.letter}")
            heads_map(p, values, key=key, selected=first.head[2:], on_click=select_head)
    p.formula(
        r"\text{JSD}(P, Q) = \tfrac12 \text{KL}(P \,\|\, M) + \tfrac12 \text{KL}(Q \,\|\, M), \qquad "
        r"M = \tfrac12 (P + Q)",
        "heads_caption",
    )
