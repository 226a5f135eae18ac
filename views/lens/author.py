"""The logit of a word as a sum over the parts of the model, and the effect of removing each part."""

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.canvas.figure import CanvasFigure
from charts.canvas.value_map import value_map
from charts.toolkit.numbers import number, whole
from charts.toolkit.style import signed, three_digits
from charts.toolkit.words import localize, say
from transformer.attribution.direct_logit_attribution import Attribution, attribute
from transformer.errors import InputError
from transformer.interventions.direct_effects import RemovedParts, is_removable, remove_parts
from transformer.layer_norm import RMSNorm
from transformer.layers.residual_stream import Part, label_in_sentence
from ui.compute.jobs import jobs
from ui.compute.store import store
from ui.lab.experiments import experiment_with
from ui.lab.second_sentence import second_sentence
from ui.page.page import Page
from ui.shell import choice
from ui.shell.choice import chosen_section
from ui.shell.navigation import go_to
from ui.show.drawings import Cell, show_map
from ui.show.figures import show_figure, show_formula, show_snippet, show_source, show_table
from ui.words.figure_texts import problem_text
from ui.words.texts import as_plain, common
from views.lens.attribution_figures import attribution_waterfall, measured_effects
from views.lens.lens_view_model import AuthorViewModel, author_view_model, candidate_words, ids_that_came
from views.lens.logit_lens import choose_follow, place_of

MOST = 12  # parts that are removed
_ANSWERS = 3  # how many responding parts are named for each removed part
_HEIGHT = 300  # pixels


def author(p: Page, row: DeltaGenerator) -> None:
    """Draw the choice of the word, the contributions of the parts, and the effects of removing them."""
    position = None if p.checkpoint.config.n_classes else place_of(p)[1]
    if position is not None and not p.trace.target and p.trace.source[position].is_padding:
        p.nothing_to_show(p.text["author_padding"])
    token, against = _choose_words(p, row, position)
    found = store.get(
        p.run,
        ("attribution", position, token, against),
        lambda: attribute(p.trace, position, token=token, against=against),
    )
    shown = author_view_model(p.trace, position, token, against, found=found)
    st.markdown(_say_sum(p, shown))
    left, right = st.columns([6, 5], gap="medium")
    with left:
        _draw_sum(p, shown)
    with right:
        cross = any(column.kind == "cross_attention" for column in shown.columns)
        show_map(
            heads_map(shown, title=p.text["author_heads"].format(word=shown.word)),
            key="lens heads",
            on_click=partial(_open, shown.columns, found.question.stack, position or 0),
        )
        st.caption(p.text["author_heads_caption" if cross else "author_heads_caption_self"])
    sections = ("measured", "sources") if found.gated else ("sources", "measured")
    if chosen_section(p.text, sections, key="lens_section") == "measured":
        _measured(p, shown)
    else:
        _list_sources(p, shown)
    st.caption(f"{p.text['author_fixed']} {p.text['author_caution']}")
    with st.expander(p.text["author_how"], icon=":material/function:"):
        rms = isinstance(p.checkpoint.model.get_submodule(found.question.stack).final_norm, RMSNorm)
        read = p.text["author_read_rms" if rms else "author_read"]
        show_formula(p.text["author_formula"].replace("%READ%", read), caption=_shapes(p, found))
        st.markdown(_notes(p, shown))
    show_snippet("author", _snippet(p, found))
    show_source(attribute)


def _choose_words(p: Page, row: DeltaGenerator, position: int | None) -> tuple[int, int | None]:
    """Draw the word whose logit is decomposed, and the word it is compared with, if any; return their ids."""
    with row:
        from_text = choose_follow(p) and position is not None
    known = candidate_words(p.trace, position, ids_that_came(p.trace)[position] if from_text else None)
    words = list(known)
    owner = (p.trace.tokens(place_of(p)[0]).displays, position, words[:2])
    typed = {"accept_new_options": position is not None, "width": 190}
    with st.container(horizontal=True):
        word = choice.select(
            p.text["word"], words, words[0], key="lens_word", owner=owner, help=p.text["word_help"], **typed
        )
        token = _id(p, word, known)
        token = known[words[0]] if token is None else token
        against = choice.select(
            p.text["against"],
            [label for label, id in known.items() if id != token],
            key="lens_against",
            owner=owner,
            placeholder=p.text["against_placeholder"],
            help=p.text["against_help"],
            **typed,
        )
    other = _id(p, against, known)
    return token, None if other == token else other


def _id(p: Page, wanted: str | None, known: dict[str, int]) -> int | None:
    """Return the id of a chosen word, or of the first token of a typed one.

    A word can be typed as it is or in its displayed form, with ``·`` for the preceding space.
    """
    if wanted is None or wanted in known:
        return known.get(wanted)
    word = wanted.strip().removeprefix("·")
    found = p.checkpoint.tokenizer.encode(word, continues=not word[:1].isalnum()) if word else ()
    return next(iter(found), None)


def _draw_sum(p: Page, shown: AuthorViewModel) -> None:
    show_figure(
        attribution_waterfall(
            [value for _part, value in shown.bars],
            labels=[localize(part.label) for part, _value in shown.bars],
            total=shown.found.total,
            n_others=shown.n_others,
            of=shown.word,
        ),
        name="who-wrote-it",
        alt=p.text["author_alt"].format(word=shown.word),
    )


def heads_map(shown: AuthorViewModel, *, title: str) -> CanvasFigure:
    """Draw layers × heads and feed-forward layers as a map."""
    names = {"self_attention": "lens.self_head", "cross_attention": "lens.cross_head", "feed_forward": "names.ffn"}
    return value_map(
        shown.heads,
        row_labels=[say("names.numbered_layer", layer=layer) for layer in range(len(shown.heads))],
        column_labels=[say(names[part.kind], head=part.head) for part in shown.columns],
        row_title="layer",
        column_title="head",
        title=title,
        value_name=say("lens.logits"),
        height=_HEIGHT,
    )


def _open(columns: tuple[Part, ...], stack: str, token: int, cell: Cell) -> None:
    """Open the page that shows the part in full."""
    part = columns[cell.key]
    if part.head < 0:
        go_to("feed_forward", stack=stack, layer=cell.query, token=token)
    kind = part.kind.removesuffix("_attention")
    go_to("attention", stack=stack, kind=kind, layer=cell.query, head=part.head, token=token)


def _say_sum(p: Page, shown: AuthorViewModel) -> str:
    found, position = shown.found, shown.found.question.position
    return p.text["author_class" if position is None else f"author_{found.question.stack}"].format(
        read=as_plain(shown.read),
        position=position,
        word=as_plain(shown.word),
        logit=three_digits(found.logit),
        count=len(found.parts),
        deviation=three_digits(found.deviation),
        part=as_plain(localize(label_in_sentence(shown.strongest.label))),
        value=signed(found.of(shown.strongest)),
    )


def _list_sources(p: Page, shown: AuthorViewModel) -> None:
    """List the strongest pairs of a head and a key: which word contributed through which head."""
    show_table(
        pd.DataFrame(
            [
                {
                    p.text["author_column_word"]: source.display,
                    p.text["author_column_head"]: localize(source.part.label),
                    p.text["author_column_weight"]: source.weight,
                    p.text["author_column_value"]: source.value,
                }
                for source in shown.sources
            ]
        ),
        name="which-word-through-which-head",
        caption=p.text["author_sources_caption"],
        height=320,
    )


def _notes(p: Page, shown: AuthorViewModel) -> str:
    lines, found = [], shown.found
    if found.question.against is None and not p.checkpoint.config.n_classes:
        lines.append(p.text["author_alone"])
    if found.cap is not None:
        lines.append(p.text["author_cap"].format(cap=three_digits(found.cap)))
    if found.gated:
        lines.append(p.text["author_gated"])
    if len(found.question.rows) > 1:
        lines.append(p.text["author_mean"].format(count=len(found.question.rows)))
    return " ".join((*lines, p.text["author_source"]))


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


def _measured(p: Page, shown: AuthorViewModel) -> None:
    """Draw the bars, the rank correlation, and the largest compensation by later parts."""
    found = shown.found
    parts = [part for part in found.strongest(len(found.parts)) if is_removable(part)][:MOST]
    parts = [part for part in found.parts if part in parts]
    trace, pair = p.trace, None
    second = second_sentence(p, key="lens_second").strip()
    if second:
        try:
            pair = experiment_with(p.run, sentence=second, keep_answer=True)
        except InputError as error:  # the other measures need no second sentence
            st.warning(as_plain(problem_text(error)), icon=":material/edit:")
    effects = jobs.result(
        p.run,
        ("removals", found.question, "" if pair is None else second),
        lambda report: remove_parts(trace, found, parts, second=pair, progress=report),
        doing=common("wait.trust"),
    )
    if effects is None:
        return
    st.markdown(_say_effects(p, effects))
    labels = [localize(part.label) for part in effects.parts]
    show_figure(
        measured_effects(
            effects.added, zero=effects.zero, mean=effects.mean, patched=effects.patched, labels=labels, of=shown.word
        ),
        name="added-and-measured",
        caption=p.text["measured_caption"] + (f" {p.text['measured_patched']}" if pair is not None else ""),
        alt=p.text["measured_alt"],
    )

    def patched(place: int) -> dict[str, float]:
        return {} if effects.patched is None else {p.text["measured_column_patched"]: effects.patched[place]}

    show_table(
        pd.DataFrame(
            [
                {
                    p.text["measured_column_part"]: label,
                    p.text["measured_column_added"]: effects.added[place],
                    p.text["measured_column_zero"]: effects.zero[place],
                    p.text["measured_column_mean"]: effects.mean[place],
                    **patched(place),
                    p.text["measured_column_answers"]: _answers(effects, place),
                }
                for place, label in enumerate(labels)
            ]
        ),
        name="removed-parts",
        caption=p.text["measured_table_caption"],
    )
    show_source(remove_parts)


def _answers(effects: RemovedParts, place: int) -> str:
    return ", ".join(f"{localize(part.label)} {signed(change)}" for part, change in effects.answers(place)[:_ANSWERS])


def _answers_in_a_sentence(effects: RemovedParts, place: int) -> str:
    answers = effects.answers(place)[:_ANSWERS]
    return ", ".join(f"{localize(label_in_sentence(part.label))} ({signed(change)})" for part, change in answers)


def _say_effects(p: Page, effects: RemovedParts) -> str:
    """Show the rank correlation, the part whose numbers differ most, and what compensated for it."""
    gap = effects.added - effects.zero  # what all other parts contribute in addition without it
    place = int(np.argmax(np.abs(gap)))
    added, lost = effects.added[place], effects.zero[place]
    repaired = (abs(lost) < abs(added) and lost * added >= 0) or lost * added < 0
    ranks = p.text["measured_said"].format(
        count=len(effects.parts),
        agreement=number(f"{effects.agreement:.2f}") if np.isfinite(effects.agreement) else "–",
        part=as_plain(localize(label_in_sentence(effects.parts[place].label))),
        added=signed(added),
        lost=signed(lost),
    )
    who = _answers_in_a_sentence(effects, place)
    key = "measured_norm" if not who else "measured_repaired" if repaired else "measured_built"
    return f"{ranks} {p.text[key].format(change=signed(gap[place]), who=as_plain(who))}"
