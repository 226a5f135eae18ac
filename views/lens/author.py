"""Who wrote it? A word's logit as a sum over the parts of the model, and where each head took its share from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from charts.canvas.figure import CanvasFigure
from charts.canvas.value_map import value_map
from charts.toolkit.numbers import whole
from charts.toolkit.style import signed, three_digits
from charts.toolkit.words import _, in_words
from transformer.attribution.direct_logit_attribution import Attribution, attribute, strongest_sources
from transformer.layer_norm import RMSNorm
from transformer.layers.residual_stream import Part, in_a_sentence
from transformer.predictions.lens import Lens, shown_word
from transformer.text.message import N_
from ui.compute.store import store
from ui.shell import choice
from ui.shell.actions import Actions, OpenPage, SelectCell, SelectLocation
from ui.shell.choice import chosen_section
from ui.shell.page import Page
from ui.shell.reducer import State
from ui.show.drawings import show_map
from ui.show.figures import show_figure, show_formula, show_snippet, show_source, show_table
from ui.words.texts import as_plain
from views.lens.attribution_figures import attribution_waterfall
from views.lens.measured import measured

MOST = 9  # parts that have a bar of their own
_CANDIDATES = 100
_MAX_SOURCES = 2000
_HEIGHT = 300  # pixels
ATTENTIONS = ("self_attention", "cross_attention")


@dataclass(frozen=True)
class Words:
    """What was chosen: ids, and how they are shown."""

    token: int
    against: int | None
    shown: str


def choose_words(p: Page, lens: Lens, position: int | None) -> Words:
    """The word whose logit is taken apart, and the one it is compared with, if any."""
    if position is not None and lens.stack == "encoder" and p.trace.source[position].is_padding:
        p.nothing_to_show(p.text["author_padding"])
    known = _candidates(p, lens, position)
    owner = (lens.read, position, *list(known)[:2])
    more = {"accept_new_options": not lens.of_classes, "width": 190}
    word = choice.select(
        p.text["word"], list(known), next(iter(known)), key="lens_word", owner=owner, help=p.text["word_help"], **more
    )
    token = _id(p, word, known)
    token = next(iter(known.values())) if token is None else token
    others = [label for label, id in known.items() if id != token]
    against = choice.select(
        p.text["against"],
        others,
        key="lens_against",
        owner=owner,
        placeholder=p.text["against_placeholder"],
        help=p.text["against_help"],
        **more,
    )
    other = _id(p, against, known)
    shown = shown_word(p.checkpoint, token)
    if other is None or other == token:
        return Words(token, None, shown)
    return Words(token, other, f"{shown} − {shown_word(p.checkpoint, other)}")


def _candidates(p: Page, lens: Lens, position: int | None) -> dict[str, int]:
    """The likeliest words there, the followed one first: ids by what they are called."""
    logits = p.trace.values("classifier.logits" if position is None else f"{lens.stack}.logits")
    logits = logits if position is None else logits[position]
    ids = [int(lens.followed[position or 0]), *np.argsort(-logits, kind="stable")[:_CANDIDATES].tolist()]
    known: dict[str, int] = {}
    for id in dict.fromkeys(ids):
        label = shown_word(p.checkpoint, id)
        known[f"{label} ({id})" if label in known else label] = id
    return known


def _id(p: Page, asked: str | None, known: dict[str, int]) -> int | None:
    """Of a word that was chosen; of one that was typed, the id of its first token: as it is, or as it is shown, with a
    ``·`` for the space in front."""
    if asked is None or asked in known:
        return known.get(asked)
    word = asked.strip().removeprefix("·")
    found = p.checkpoint.tokenizer.encode(word, continues=not word[:1].isalnum()) if word else ()
    return next(iter(found), None)


def author(p: Page, lens: Lens, position: int | None, words: Words) -> None:
    """The pictures and the sentences below the controls."""
    found = store.get(
        p.run,
        ("attribution", position, words.token, words.against),
        lambda: attribute(p.trace, position, token=words.token, against=words.against),
    )
    st.markdown(_in_words(p, lens, found, words))
    left, right = st.columns([6, 5], gap="medium")
    with left:
        drawn = [part for part in found.parts if part in found.strongest(MOST)]
        show_figure(
            attribution_waterfall(
                [found.of(part) for part in drawn],
                labels=[in_words(part.label) for part in drawn],
                total=found.total,
                n_others=len(found.parts) - len(drawn),
                of=words.shown,
            ),
            name="who-wrote-it",
            alt=p.text["author_alt"].format(word=words.shown),
        )
    with right:
        columns, figure = heads_map(found, title=p.text["author_heads"].format(word=words.shown))
        show_map(figure, key="lens heads", means=partial(_open, columns, found.question.stack, position or 0))
        cross = any(column.kind == "cross_attention" for column in columns)
        st.caption(p.text["author_heads_caption" if cross else "author_heads_caption_self"])
    sections = ("measured", "sources") if found.gated else ("sources", "measured")
    if chosen_section(p.text, sections, key="lens_section") == "measured":
        measured(p, found, words.shown)
    else:
        _sources(p, found)
    st.markdown(_notes(p, found, words))
    rms = isinstance(p.checkpoint.model.get_submodule(lens.stack).final_norm, RMSNorm)
    read = p.text["author_read_rms" if rms else "author_read"]
    show_formula(p.text["author_formula"].replace("%READ%", read), caption=_shapes(p, found))
    show_snippet("author", _snippet(p, found))
    show_source(attribute)


def heads_map(found: Attribution, *, title: str) -> tuple[list[Part], CanvasFigure]:
    """What each column is (its ``layer`` is 0), and layers × heads and feed-forward layers as a map."""
    kinds = [kind for kind in ATTENTIONS if Part(kind, 0, 0) in found.parts]
    tables = [found.table(kind) for kind in (*kinds, "feed_forward")]
    columns = [
        Part(kind, 0, head) for kind, table in zip(kinds, tables, strict=False) for head in range(table.shape[1])
    ]
    columns.append(Part("feed_forward", 0))
    names = {"self_attention": N_("S{head}"), "cross_attention": N_("C{head}"), "feed_forward": N_("FFN")}
    values = np.concatenate(tables, axis=1)
    return columns, value_map(
        values,
        row_labels=[_("layer {layer}", layer=layer) for layer in range(len(values))],
        column_labels=[_(names[part.kind], head=part.head) for part in columns],
        row_title=N_("layer"),
        column_title=N_("head"),
        title=title,
        value_name=_("logits"),
        height=_HEIGHT,
    )


def _open(columns: Sequence[Part], stack: str, token: int, _state: State, cell: SelectCell) -> Actions:
    """The page that shows the part in full."""
    part, place = columns[cell.key], SelectLocation(stack, layer=cell.query, token=token)
    if part.head < 0:
        return (OpenPage("feed_forward", place),)
    kind = part.kind.removesuffix("_attention")
    return (OpenPage("attention", replace(place, kind=kind, head=part.head)),)


def _in_words(p: Page, lens: Lens, found: Attribution, words: Words) -> str:
    position = found.question.position
    key = "author_class" if position is None else f"author_{lens.stack}"
    best = found.strongest(1)[0]
    return p.text[key].format(
        read=as_plain(lens.read[position or 0]),
        position=position,
        word=as_plain(words.shown),
        logit=three_digits(found.logit),
        count=len(found.parts),
        deviation=three_digits(found.deviation),
        part=as_plain(in_words(in_a_sentence(best.label))),
        value=signed(found.of(best)),
    )


def _sources(p: Page, found: Attribution) -> None:
    """Which word, through which head: the strongest pairs of a head and a key."""
    show_table(
        pd.DataFrame(
            [
                {
                    p.text["author_column_word"]: source.display,
                    p.text["author_column_head"]: in_words(source.part.label),
                    p.text["author_column_weight"]: source.weight,
                    p.text["author_column_value"]: source.value,
                }
                for source in strongest_sources(p.trace, found, most=_MAX_SOURCES)
            ]
        ),
        name="which-word-through-which-head",
        caption=p.text["author_sources_caption"],
        height=320,
    )


def _notes(p: Page, found: Attribution, words: Words) -> str:
    said = [p.text["author_fixed"]]
    if words.against is None and not p.checkpoint.config.n_classes:
        said.append(p.text["author_alone"])
    if found.cap is not None:
        said.append(p.text["author_cap"].format(cap=three_digits(found.cap)))
    if found.gated:
        said.append(p.text["author_gated"])
    if len(found.question.rows) > 1:
        said.append(p.text["author_mean"].format(count=len(found.question.rows)))
    return " ".join((*said, p.text["author_caution"], p.text["author_source"]))


def _shapes(p: Page, found: Attribution) -> str:
    return p.text["author_formula_caption"].format(
        count=len(found.parts), width=whole(p.checkpoint.config.d_model), rows=len(found.question.rows)
    )


def _snippet(p: Page, found: Attribution) -> str:
    question = found.question
    place = [] if question.position is None else [str(question.position)]
    place.append(f"token={question.token}")
    if question.against is not None:
        place.append(f"against={question.against}")
    return (
        f"{p.preamble}\nfrom transformer.attribution.direct_logit_attribution import attribute\n"
        "from transformer.attribution.direct_logit_attribution import strongest_sources\n\n"
        f"found = attribute(trace, {', '.join(place)})\n"
        "print(found.total, found.logit, found.deviation)\n"
        "for part in found.strongest(10):\n    print(part.label, found.of(part))\n"
        "for source in strongest_sources(trace, found, most=10):\n"
        "    print(source.display, source.part.label, source.weight, source.value)\n"
    )
