"""The section of the Paths page about information flow routes to one word of the output."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.toolkit.style import three_digits
from transformer.attribution.information_flow import Flow, edges_into, information_flow, start_of
from transformer.errors import MessageError
from transformer.predictions.answer_probabilities import prediction_rows
from ui.compute.store import store
from ui.shell import choice
from ui.shell.actions import OpenPage, SelectLocation
from ui.shell.choice import one_of
from ui.shell.events import heard
from ui.shell.page import Page
from ui.shell.reducer import send
from ui.show.figures import show_figure, show_formula, show_snippet, show_source
from ui.words.catalogues import translate
from ui.words.model_terms import output_bias
from ui.words.texts import as_plain, page_texts, slider_format
from views.paths.flow_figure import KINDS, STACKS, flow_graph

_FIGURE = "information-flow"
_THRESHOLDS = (0.01, 0.4)  # smallest, largest


def flow(p: Page, room: DeltaGenerator) -> None:
    """Draw the choice of word and smallest share in ``room``, then contributing tokens and heads."""
    question = prediction_rows(p.trace)
    if not question.rows:
        p.nothing_to_show(p.text["nothing_asked"])
    with room:
        row = _row(p, question.rows, question.displays)
        threshold = choice.slider(
            p.text["threshold"],
            *_THRESHOLDS,
            default=0.05,
            step=0.01,
            format=slider_format(),
            key="paths_threshold",
            help=p.text["threshold_help"],
            width=280,
        )
    found = _found(p, row, threshold)
    tokens = {stack: p.trace.tokens(stack) for stack in p.trace.stacks}
    st.markdown(_in_words(p, found, question.displays[question.rows.index(row)]))
    show_figure(
        flow_graph(found, tokens=tokens),
        name=_FIGURE,
        caption=p.text["flow_caption"],
        alt=p.text["flow_alt"],
        on_select=_open,
    )
    formula = p.text["flow_formula"].replace("%BIAS%", output_bias(p.checkpoint.model))
    show_formula(formula, caption=p.text["flow_shapes"].format(edges=len(found.edges)))
    show_snippet(
        "flow",
        f"{p.preamble}\nfrom views.paths.flow_figure import flow_graph\n"
        "from transformer.attribution.information_flow import information_flow, start_of\n\n"
        f"flow = information_flow(trace, start_of(trace, {row}), threshold={threshold})\n"
        "for edge in sorted(flow.edges, key=lambda edge: -edge.share)[:10]:\n"
        "    print(edge)\n"
        "figure = flow_graph(flow, tokens={stack: trace.tokens(stack) for stack in trace.stacks})  # figure.show()\n",
    )
    show_source(information_flow, edges_into)


def _open() -> None:
    """Open the head of the clicked line on its page."""
    chosen = heard(f"chart {_FIGURE}", "selection")
    for point in chosen.points if chosen else ():
        if (place := point.get("customdata")) and place[3] >= 0:
            stack, kind, layer, head, token = place
            send(OpenPage("attention", SelectLocation(STACKS[stack], KINDS[kind], layer, head, token)))


def _found(p: Page, row: int, threshold: float) -> Flow:
    def routes() -> Flow:
        return information_flow(p.trace, start_of(p.trace, row), threshold=threshold)

    try:
        return store.get(p.run, ("flow", row, threshold), routes)
    except MessageError as error:  # one layer of this model adds a term that belongs to no head
        p.nothing_to_show(as_plain(translate(error)))


def _row(p: Page, rows: tuple[int, ...], displays: tuple[str, ...]) -> int:
    """Return the row of the logits that predicted the word."""
    if len(rows) == 1:
        return rows[0]
    words = [text["word_option"] for text in page_texts(p.text.name)]
    read = zip(rows, displays, strict=True)
    called = {row: [said.format(row=row, word=word) for said in words] for row, word in read}
    return one_of(
        p.text["turn"],
        called,
        key="paths_word",
        owner=(p.checkpoint.fingerprint, rows, displays),
        in_list=True,
        width=220,
    )


def _in_words(p: Page, found: Flow, word: str) -> str:
    """Say which tokens contribute most."""
    ends = sorted((weight, node) for node, weight in found.weights.items() if node.level == 0)[::-1][:3]
    if not ends:
        return p.text["flow_none"].format(word=as_plain(word))
    parts = [
        f"{as_plain(p.trace.tokens(node.stack).labels[node.token])} ({three_digits(weight)})" for weight, node in ends
    ]
    return p.text["flow_says"].format(word=as_plain(word), tokens=", ".join(parts))
