"""Side-by-side comparison of runs: outputs, one head's maps and their difference, differing heads."""

import math
from collections.abc import Callable, Sequence
from itertools import takewhile

import numpy as np
import streamlit as st

from charts.canvas.attention_maps import KEY_TITLE, LOOKS_AT, PREDICTING, attention_map, row_title
from charts.canvas.value_map import value_map
from charts.toolkit.head_names import head_name
from charts.toolkit.style import three_digits
from charts.toolkit.words import localize, say
from transformer.predictions.comparison import MapDifference, Piece
from ui.lab.next_sentence_class import next_sentence_line
from ui.lab.shown_head import select_head
from ui.page.page import Page
from ui.shell.focus import start_of
from ui.shell.presentation.presenter import is_presenting
from ui.show.drawings import Cell, show_map
from ui.show.figures import show_formula
from ui.words.texts import as_plain, token_name
from views.compare.compare_view_model import CompareViewModel, Side, words_of_fate

MAP_HEIGHT, PRESENTED_HEIGHT = 300, 260
MOST_KEYS = 14  # with more, two maps stand side by side instead of three, so that every column has its label
ROW_HEIGHT = 350  # of the one row that is drawn large
LONGEST = 44  # characters of a sentence above its output
_BOTH = " / "  # between two tokens at the same place


def show_answers(p: Page, shown: CompareViewModel) -> None:
    """Draw all outputs; words that differ from A's are orange, and words of A that B lacks are blue."""
    # the task prefix, omitted if all sentences begin with it
    task = start_of(shown.sides[0].trace.sentence, p.checkpoint.framing.starts)
    task = task if all(side.trace.sentence.startswith(task) for side in shown.sides) else ""
    for index, column in enumerate(st.columns(len(shown.sides), gap="small")):
        with column.container(gap=None):
            _show_answer(p, shown, index, task=task)


def _show_answer(p: Page, shown: CompareViewModel, index: int, *, task: str) -> None:
    side, answer, pieces, texts = (
        shown.sides[index],
        shown.answers[index],
        shown.word_differences[index],
        shown.complete_texts,
    )
    alike = index > 0 and all(piece.fate == "same" for piece in pieces)
    same = alike and shown.is_one_run
    heading = [side.letter]
    if shown.are_models:
        heading.append(side.name)
    if shown.are_sentences:
        other = shown.sides[0 if index else 1].trace.sentence.removeprefix(task)
        heading.append(p.text["quoted"].format(sentence=shorten(side.trace.sentence.removeprefix(task), other)))
    if alike and not same and texts is None:
        heading.append(p.text["answer_same"])
    if answer.parts and texts is None:
        heading.append(p.text["answer_sure"].format(probability=three_digits(answer.probability)))
    st.caption(as_plain(" · ".join(heading)))
    if same:
        st.caption(p.text["same_sentence"])
    elif texts is not None:
        st.markdown(f"##### {p.text['answer_text'].format(sum=three_digits(texts[index]))}")
    else:
        mark = ("added", "orange") if index else ("removed", "blue")
        st.markdown(f"##### {marked(pieces, *mark) or p.text['answer_none']}")
    if side.next_sentence is not None:
        st.markdown(next_sentence_line(side.next_sentence))
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


def map_height() -> int:
    """Return the height of a map in pixels."""
    return PRESENTED_HEIGHT if is_presenting() else MAP_HEIGHT


def say_what_changes(p: Page, shown: CompareViewModel) -> None:
    """Write what the swapped word changes in the output, and what the head does with it."""
    st.markdown(" ".join(filter(None, (_outcome(p, shown), _reason(p, shown)))))


def _outcome(p: Page, shown: CompareViewModel) -> str:
    """Return the sentence about the two outputs; "" if two texts differ in more than a word."""
    answers = shown.answers[:2]
    if p.encodes_sentences or not all(answer.parts for answer in answers):
        return ""
    numbers = dict(zip(("was", "now"), (three_digits(answer.probability) for answer in answers), strict=True))
    if shown.swapped_words is None:
        return ""
    words = dict(zip(("one", "other"), map(as_plain, shown.swapped_words), strict=True))
    if p.checkpoint.config.fills_blanks:
        filled = [", ".join(as_plain(part.display.removeprefix("·")) for part in answer.parts) for answer in answers]
        key = "swap_filled_same" if filled[0] == filled[1] else "swap_filled"
        return p.text[key].format(**words, **numbers, before=filled[0], after=filled[1])
    if shown.complete_texts is not None:
        change = shown.complete_texts[1] - shown.complete_texts[0]
        key = "swap_text_more" if change >= 0 else "swap_text_less"
        return p.text[key].format(**words, factor=three_digits(float(np.exp(abs(change)))))
    return _generated(p, shown, words)


def _generated(p: Page, shown: CompareViewModel, words: dict[str, str]) -> str:
    """Return what replacing ``one`` word by an ``other`` changes in a class or a generated text."""
    if shown.answers[0].text == shown.answers[1].text:
        return p.text["swap_same"].format(**words)
    if shown.swapped_outputs is not None:
        words |= zip(("before", "after"), map(as_plain, shown.swapped_outputs), strict=True)
        return p.text["swap_word"].format(**words)
    removed, added = (words_of_fate(shown.word_differences[1], fate) for fate in ("removed", "added"))
    if len(removed) + len(added) == 1:
        return p.text["swap_gone" if removed else "swap_new"].format(**words, word=as_plain(*removed, *added))
    return p.text["swap_moved" if sorted(removed) == sorted(added) else "swap_rest"].format(**words)


def _reason(p: Page, shown: CompareViewModel) -> str:
    """Return the sentence about the head: that it follows the word, or the row that differs most."""
    shift, location = shown.largest_shift, shown.location
    head = head_name(location.layer, location.head)
    if shown.followed:
        words = dict(zip(("query", "other"), map(token_name, shown.changed_row.queries), strict=True))
        return p.text["followed" if shown.swapped_outputs else "followed_rest"].format(**words, head=head)
    if shift is None:
        return ""
    words = {name: token_name(label) for name, label in shift.labels.items()}
    row = "shift_predicting" if location.kind == "cross" else "shift_reading"
    if location.kind == "cross" and shown.changed_row.queries[0] != shown.changed_row.queries[1]:
        row, words["other"] = "shift_predicting_other", token_name(shown.changed_row.queries[1])
    return p.text[row].format(**words, head=head)


def show_changed_row(p: Page, shown: CompareViewModel) -> None:
    """Draw the row that changes most, of A and of B, one above the other."""
    row = shown.changed_row
    if row is None:
        return
    is_cross = shown.location.kind == "cross"
    show_map(
        value_map(
            row.weights,
            row_labels=[
                f"{letter}: {label.removeprefix('·')}" for letter, label in zip("AB", row.queries, strict=True)
            ],
            column_labels=row.keys,
            row_title=row_title(shifted=is_cross),
            column_title=KEY_TITLE,
            scale="sequential",
            allowed=row.known,
            limit=1.0,
            title=p.text["followed_row" if shown.followed else "changed_row"].format(
                head=head_name(shown.location.layer, shown.location.head)
            ),
            value_name="",
            phrase=(PREDICTING if is_cross else "", LOOKS_AT),
            masked_text=p.text["no_partner"],
            height=ROW_HEIGHT,
        ).with_metadata(legend=say("fixed_scale")),
        key="compare changed row",
    )


def show_maps(p: Page, shown: CompareViewModel) -> None:
    """Draw A's map, B's map, and their difference; with C, the differences are below the maps."""
    first, *others = shown.sides
    st.html("<style>.st-key-compare-maps [data-testid='stColumn'] { min-width: 16rem; }</style>")
    with st.container(key="compare maps"):
        across = 3 if max(len(side.view.key) for side in shown.sides) <= MOST_KEYS else 2
        rows = [st.columns(across, gap="small") for _row in range(math.ceil((2 + len(others)) / across))]
    columns = [column.container(gap="xsmall") for row in rows for column in row]
    for column, side in zip(columns, shown.sides, strict=False):
        with column:
            named = side.view.query.labels if side.location.kind == "cross" else None
            drawn = attention_map(side.view, head=side.location.head, shifted_labels=named, height=map_height())
            stack, kind, layer, head = side.location
            named = p.text[f"kind_{stack}_{kind}"]
            # the title must fit on one line
            title = p.text["map_title"].format(side=side.letter, kind=named, head=head_name(layer, head))
            show_map(drawn.with_metadata(title=title), key=f"compare map {side.letter}")
    for column, side, difference in zip(columns[len(shown.sides) :], others, shown.differences, strict=False):
        with column:
            _show_difference(p, first, side, difference, limit=shown.limit)
    notes = [alignment_text(p, shown.differences[0])]
    if shown.are_sentences and shown.positions_differ:
        notes.append(p.text["positions_differ"])
    st.caption(" ".join(notes))


def _show_difference(p: Page, first: Side, other: Side, difference: MapDifference, *, limit: float) -> None:
    letter, is_cross = other.letter, first.location.kind == "cross"
    title_key = "map_difference" if difference.known.any() else "map_difference_none"
    show_map(
        value_map(
            difference.values,
            row_labels=short_labels(difference.query.labels),
            column_labels=short_labels(difference.key.labels),
            row_title=row_title(shifted=is_cross),
            column_title=KEY_TITLE,
            scale="diverging",
            allowed=difference.known,
            limit=limit,
            title=p.text[title_key].format(side=letter, change=three_digits(difference.mean_change)),
            value_name=f"{letter} − A",
            phrase=(PREDICTING if is_cross else "", LOOKS_AT),
            masked_text=p.text["no_partner"],
            height=map_height(),
        ).with_metadata(legend=""),  # the title already shows it
        key="compare map difference" + ("" if letter == "B" else f" {letter}"),
    )


def short_labels(labels: Sequence[str]) -> list[str]:
    """Return A's token with a star where B's replaces it: both names would shrink the cells."""
    return [f"{label.split(_BOTH)[0]}*" if _BOTH in label else label for label in labels]


def alignment_text(p: Page, difference: MapDifference) -> str:
    """Say which tokens have no partner, and which replace each other."""
    sides = (difference.query, difference.key)
    alone = [label for side in sides for label, entry in zip(side.labels, side.merged, strict=True) if None in entry]
    if alone:
        names = list(dict.fromkeys(as_plain(label) for label in alone))
        shown = ", ".join(names[:6]) + (" …" if len(names) > 6 else "")
        return p.text["unaligned"].format(count=difference.n_unaligned, labels=shown)
    swapped = [label for side in sides for label in side.labels if _BOTH in label]
    replaced = p.text["replaced"].format(pairs=as_plain(", ".join(dict.fromkeys(swapped)))) if swapped else ""
    return p.text["aligned"].format(replaced=replaced).strip()


def shorten(text: str, other: str = "") -> str:
    """Shorten a sentence, but keep its first word that differs from the ``other`` sentence."""
    words, others = text.split(), other.split()
    text = " ".join(words)
    if len(text) <= LONGEST:
        return text
    equal = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(words, others, strict=False)))
    first = 0
    while first < equal and len(" ".join(words[first : equal + 1])) > LONGEST - 2:
        first += 1
    kept = ("…" if first else "") + " ".join(words[first:])
    return kept if len(kept) <= LONGEST else f"{kept[: LONGEST - 1]}…"


def heads_map(
    p: Page, values: np.ndarray, *, key: str, selected: tuple[int, int] | None, on_click: Callable[[Cell], None]
) -> None:
    """Draw one number per head; ``on_click`` gets ``Cell(query=layer, key=head)``."""
    layers, heads = values.shape
    show_map(
        value_map(
            values,
            row_labels=[p.text["row_layer"].format(layer=layer) for layer in range(layers)],
            column_labels=[p.text["column_head"].format(head=head) for head in range(heads)],
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


def which_heads(p: Page, shown: CompareViewModel) -> None:
    """Draw how much every head differs from A's; a click shows that head."""
    others = shown.sides[1:]
    for column, side, values in zip(st.columns(len(others)), others, shown.head_differences, strict=True):
        if np.isnan(values).any():
            column.markdown(p.text["heads_none"])
            return
        order = [np.unravel_index(index, values.shape) for index in np.argsort(-values, axis=None, kind="stable")[:3]]
        most = [
            p.text["heads_head"].format(head=head_name(layer, head), value=three_digits(float(values[layer, head])))
            for layer, head in order
        ]
        largest = p.text["heads_largest"].format(most=", ".join(most)) if values.max() > 0 else p.text["heads_equal"]
        intro = p.text["heads_intro"].format(largest=three_digits(float(values.max())))
        with column:
            st.markdown(f"**{side.letter}.** {intro} {largest}" if len(others) > 1 else f"{intro} {largest}")
            key = "compare heads" + ("" if side.letter == "B" else f" {side.letter}")
            heads_map(p, values, key=key, selected=shown.location[2:], on_click=select_head)
    keys, rows = len(shown.differences[0].key.pairs), len(shown.differences[0].query.pairs)
    show_formula(p.text["heads_formula"], caption=p.text["heads_caption"].format(keys=keys, rows=rows))
