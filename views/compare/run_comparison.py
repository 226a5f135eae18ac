"""Two runs side by side: both answers, both maps on one scale, their difference, and what else differs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from charts.canvas.attention_maps import KEY_TITLE, LOOKS_AT, PREDICTING, attention_map, row_title
from charts.canvas.value_map import value_map
from charts.toolkit.style import three_digits
from charts.toolkit.words import _, in_words
from transformer.predictions.answer_probabilities import answer_of
from transformer.predictions.comparison import (
    MapDifference,
    Piece,
    StreamSimilarity,
    beginning,
    compared_attention,
    difference_map,
    head_differences,
    stream_similarity,
    word_diff,
)
from transformer.runs.attention_view import AttentionView
from transformer.runs.inputs import prompt_ids
from transformer.runs.traces import Trace
from ui.shell.actions import Actions, SelectCell, SelectHead
from ui.shell.focus import start_of
from ui.shell.page import Page
from ui.shell.picture import show_picture
from ui.shell.presentation.presenter import presenting
from ui.shell.reducer import Meaning, State
from ui.show.drawings import show_map
from ui.show.figures import show_figure, show_formula
from ui.words.catalogues import said
from ui.words.texts import as_plain, common
from views.compare.stream_distance_figure import stream_distance

MAP_HEIGHT, PRESENTED_HEIGHT = 245, 180  # with the answers above them, three maps end on the first screen
LONGEST = 36  # characters of a sentence above its answer
SMALLEST_SCALE = 0.05  # a difference map ends at least here, or rounding errors would show


@dataclass(frozen=True)
class Side:
    """One of the runs: "A", "B" or "C". ``whole``: with what a model wrote that goes on with the sentence."""

    letter: str
    trace: Trace
    whole: bool = True

    @property
    def name(self) -> str:
        """Of its checkpoint."""
        return self.trace.checkpoint.name

    @property
    def cut(self) -> bool:
        """Whether only the beginning of its maps is shown, the sentence itself."""
        return not self.whole and self.trace.checkpoint.config.kind == "decoder-only"

    def attention(self, stack: str, layer: int, kind: str) -> AttentionView:
        view, trace = compared_attention(self.trace, stack, layer, kind), self.trace
        return beginning(view, len(prompt_ids(trace.checkpoint, trace.sentence))) if self.cut else view


@dataclass(frozen=True)
class Head:
    """One head of one side."""

    side: Side
    stack: str
    kind: str
    layer: int
    head: int

    @property
    def view(self) -> AttentionView:
        return self.side.attention(self.stack, self.layer, self.kind)


def show_answers(p: Page, first: Side, *others: Side) -> None:
    """All answers, the words that differ from A's marked: blue those of A alone (beside B), orange those of another."""
    sides = (first, *others)
    answers = [answer_of(side.trace) for side in sides]
    differs = [word_diff(answers[0].text, answer.text) for answer in answers[1:]]
    task = start_of(first.trace.sentence, first.trace.checkpoint.framing.starts)  # needs no room where all have it
    task = task if all(side.trace.sentence.startswith(task) for side in others) else ""
    columns = st.columns(len(sides), gap="small")
    for column, side, answer, pieces in zip(columns, sides, answers, (differs[0], *differs), strict=True):
        alike = side is not first and all(piece.fate == "same" for piece in pieces)
        same = alike and first.name == side.name and first.trace.sentence == side.trace.sentence
        same = same and not first.trace.forced
        heading = [side.letter]
        if any(first.name != other.name for other in others):
            heading.append(side.name)
        if not p.reads_pictures and any(first.trace.sentence != other.trace.sentence for other in others):
            heading.append(p.text["quoted"].format(sentence=shorten(side.trace.sentence.removeprefix(task))))
        if alike and not same:
            heading.append(p.text["answer_same"])
        if answer.parts:
            heading.append(p.text["answer_sure"].format(probability=three_digits(answer.probability)))
        with column.container(horizontal=True, vertical_alignment="center", gap="small"):
            if p.reads_pictures:
                show_picture(side.trace.sentence, side.trace.checkpoint.config, width=44)
            with st.container(gap=None):
                st.caption(as_plain(" · ".join(heading)))
                if same:
                    st.caption(p.text["same_sentence"])
                else:
                    mark = ("removed", "blue") if side is first else ("added", "orange")
                    st.markdown(f"##### {marked(pieces, *mark) or p.text['answer_none']}")
                for note in side.trace.notes:
                    st.caption(f":material/info: {as_plain(said(note))}")


def marked(pieces: tuple[Piece, ...], own: str, colour: str) -> str:
    """One side of a diff as Markdown: what both have, and what only this side has on a coloured ground."""
    shown, begun = "", False  # whether B's text has begun, which is the one that says where the spaces are
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
    return PRESENTED_HEIGHT if presenting() else MAP_HEIGHT


def show_maps(p: Page, first: Head, *others: Head) -> tuple[MapDifference, ...]:
    """A's head, B's head, and what B has more; with a third one, the differences from A's stand below the maps."""
    found = tuple(difference_map(first.view, one.view, head=first.head, second_head=one.head) for one in others)
    limit = max(SMALLEST_SCALE, *(float(np.abs(difference.values).max()) for difference in found))
    st.html("<style>.st-key-compare-maps [data-testid='stColumn'] { min-width: 16rem; }</style>")
    with st.container(key="compare maps"):
        rows = [st.columns(3, gap="small") for _row in others]
    columns = [column.container(gap="xsmall") for row in rows for column in row]
    for column, head in zip(columns, (first, *others), strict=False):
        with column:
            named = head.view.query.labels if head.kind == "cross" else None
            drawn = attention_map(head.view, head=head.head, shifted_labels=named, height=map_height())
            drawn = drawn.headed(head.side.letter)
            show_map(drawn, key=f"compare map {head.side.letter}")
    for column, one, difference in zip(columns[-len(others) :], others, found, strict=True):
        with column:
            _show_difference(p, first, one, difference, limit=limit)
    st.caption(alignment_text(p, found[0]))
    return found


def _show_difference(p: Page, first: Head, other: Head, difference: MapDifference, *, limit: float) -> None:
    letter = other.side.letter
    told = "map_difference" if difference.known.any() else "map_difference_none"
    show_map(
        value_map(
            difference.values,
            row_labels=difference.query.labels,
            column_labels=difference.key.labels,
            row_title=row_title(first.view, shifted=first.kind == "cross"),
            column_title=KEY_TITLE,
            scale="diverging",
            allowed=difference.known,
            limit=limit,
            title=p.text[told].format(side=letter, change=three_digits(difference.mean_change)),
            value_name=f"{letter} − A",
            phrase=(PREDICTING if first.kind == "cross" else "", LOOKS_AT),
            masked_text=p.text["no_partner"],
            height=map_height(),
        ).with_metadata(legend=""),  # the title says it
        key="compare map difference" + ("" if letter == "B" else f" {letter}"),
    )


def alignment_text(p: Page, difference: MapDifference) -> str:
    """Which tokens have no partner, and which took another's place."""
    sides = (difference.query, difference.key)
    alone = [label for side in sides for label, entry in zip(side.labels, side.merged, strict=True) if None in entry]
    if alone:
        names = list(dict.fromkeys(as_plain(label) for label in alone))
        shown = ", ".join(names[:6]) + (" …" if len(names) > 6 else "")
        return p.text["unaligned"].format(count=difference.n_unaligned, labels=shown)
    swapped = [label for side in sides for label in side.labels if " / " in label]
    replaced = p.text["replaced"].format(pairs=as_plain(", ".join(dict.fromkeys(swapped)))) if swapped else ""
    return p.text["aligned"].format(replaced=replaced).strip()


def shorten(text: str) -> str:
    """As much of a sentence as fits above its answer."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def heads_map(p: Page, values: np.ndarray, *, key: str, selected: tuple[int, int] | None, means: Meaning) -> None:
    """One number for every head on a canvas; ``means``: what ``SelectCell(query=layer, key=head)`` means."""
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
        means=means,
    )


def which_heads(p: Page, first: Head, *others: Head, differences: Sequence[MapDifference]) -> None:
    """How much every head differs from A's; a click opens one."""
    for column, second in zip(st.columns(len(others)), others, strict=True):
        letter = second.side.letter
        values = head_differences(first.side.trace, second.side.trace, first.stack, first.kind)
        if np.isnan(values).any():
            column.markdown(p.text["heads_none"])
            return
        order = [np.unravel_index(index, values.shape) for index in np.argsort(-values, axis=None, kind="stable")[:3]]
        most = [
            p.text["heads_head"].format(layer=layer, head=head, value=three_digits(float(values[layer, head])))
            for layer, head in order
        ]
        largest = p.text["heads_largest"].format(most=", ".join(most)) if values.max() > 0 else p.text["heads_equal"]
        intro = p.text["heads_intro"].format(largest=three_digits(float(values.max())))
        with column:
            st.markdown(f"**{letter}.** {intro} {largest}" if len(others) > 1 else f"{intro} {largest}")
            key = "compare heads" + ("" if letter == "B" else f" {letter}")
            heads_map(p, values, key=key, selected=(first.layer, first.head), means=_look_at)
    keys, rows = len(differences[0].key.pairs), len(differences[0].query.pairs)
    show_formula(p.text["heads_formula"], caption=p.text["heads_caption"].format(keys=keys, rows=rows))


def _look_at(_state: State, cell: SelectCell) -> Actions:
    return (SelectHead(cell.query, cell.key),)


def in_which_layer(p: Page, first: Head, second: Head) -> None:
    """How far the residual streams of corresponding tokens are from each other, layer by layer."""
    found = stream_similarity(first.side.trace, second.side.trace, first.stack)
    st.markdown(p.text["stream_intro"].format(stack=common(f"focus.{first.stack}")))
    if not found.alignment.pairs:
        st.markdown(p.text["stream_none"])
        return
    show_figure(
        stream_distance(found.cosine, steps=found.steps, labels=found.labels, equal=found.alignment.equal),
        name="stream-distance",
        caption=furthest_text(p, found),
        alt=p.text["stream_alt"],
    )
    show_formula(
        p.text["stream_formula"],
        caption=p.text["stream_caption"].format(
            steps=len(found.steps),
            tokens=len(found.labels),
            width=first.side.trace.checkpoint.config.d_model,
        ),
    )


def furthest_text(p: Page, found: StreamSimilarity) -> str:
    """The equal word whose two vectors are furthest apart, and where."""
    equal = np.array(found.alignment.equal, dtype=bool)
    cosine = np.where(equal, found.cosine, 2.0)
    step, pair = np.unravel_index(cosine.argmin(), cosine.shape)
    if not equal.any() or cosine[step, pair] > 1 - 1e-6:
        return ""
    name = in_words(found.steps[step]) if step else _("the embedding")
    return p.text["stream_furthest"].format(
        token=as_plain(found.labels[pair]),
        cosine=three_digits(float(cosine[step, pair])),
        step=name,
        start=three_digits(float(cosine[0, pair])),
    )
