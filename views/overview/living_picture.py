"""The living picture: the sentence on its way through the model, with the numbers of this trace."""

from collections.abc import Mapping
from functools import partial

import streamlit as st

from charts.canvas.figure import CanvasFigure
from charts.canvas.sentence_flow_picture import sentence_flow_picture
from transformer.config import PictureConfig
from transformer.explanation.sentence_flow import SentenceFlow, sentence_flow
from transformer.runs.traces import Trace
from ui.compute.store import store
from ui.shell import focus as shared_focus
from ui.shell.focus import Focus
from ui.shell.navigation import go_to, pages
from ui.shell.page import Page
from ui.show.drawings import show_flow

KEY = "living picture"
_INSIDE = "living picture: unfolded"
LINKS = {  # the page that tells more of what is unfolded
    "self_attention": "attention",
    "cross_attention": "attention",
    "feed_forward": "feed_forward",
    "norm": "add_norm",
    "embedding": "embeddings",
    "answer": "decoding",
}


def living_picture(p: Page) -> None:
    """Draw it; a click in it moves the shared focus, and opens the numbers of one layer."""
    st.session_state.setdefault(_INSIDE, None)
    unfolded = st.session_state[_INSIDE]
    inside = unfolded[1:] if unfolded and unfolded[0] == p.run else None
    show_flow(
        flow_figure(_flow(p, inside), p.trace, p.focus),
        key=KEY,
        on_place=_place,
        on_inside=partial(_unfold, p.run),
        on_page=_go_to,
    )


def flow_figure(flow: SentenceFlow, trace: Trace, focus: Focus, *, links: bool = True) -> CanvasFigure:
    """The picture as it opens at ``focus``, with links to the pages that exist."""
    pictures = None
    if isinstance(trace.checkpoint.config, PictureConfig):
        tokenizer = trace.checkpoint.tokenizer
        pictures = {stack: tokenizer.thumbnails(trace.tokens(stack).ids) for stack in trace.stacks}
    begin = {name: getattr(focus, name) for name in ("stack", "kind", "layer", "head", "token")}
    existing = pages() if links else ()
    leads = {part: page for part, page in LINKS.items() if page in existing}
    return sentence_flow_picture(flow, begin=begin, pictures=pictures, links=leads)


def _flow(p: Page, inside: tuple[str, int] | None) -> SentenceFlow:
    trace = p.trace
    if inside and inside[1] >= trace.n_layers(inside[0]):
        inside = None
    layers = (inside,) if inside else ()
    return store.get(p.run, ("flow", *layers), lambda: sentence_flow(trace, inside=layers))


def _place(place: Mapping[str, object]) -> None:
    shared_focus.change(**place)


def _go_to(page: str, place: Mapping[str, object]) -> None:
    go_to(page, **place)


def _unfold(run: object, layer: tuple[str, int]) -> None:
    st.session_state[_INSIDE] = (run, *layer)
