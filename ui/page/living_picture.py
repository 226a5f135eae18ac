"""The living picture: the sentence moving through the model, with the numbers of this trace."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import streamlit as st

from charts.canvas.figure import CanvasFigure
from charts.canvas.living_picture_canvas import living_picture_canvas
from transformer.attribution.leave_one_out import LeaveOneOut, leave_one_out
from transformer.predictions.living_picture_numbers import LivingPicture, living_picture_numbers
from transformer.runs.edit_specs import EditSpec, edits_from
from transformer.runs.traces import Trace
from transformer.runs.tracing import trace_of
from ui.compute.store import store
from ui.page.page import Page
from ui.shell import choice
from ui.shell.fitting import fit_trace
from ui.shell.focus import Focus
from ui.shell.guidance.lesson_bar import STOP, name_step
from ui.shell.navigation import pages_of
from ui.show.drawings import show_living_picture

KEY = "living picture"
MOST_TOKENS = 48  # in a sentence that is classified again without each of its words
_INSIDE = "living picture: unfolded"
LINKS = {  # the page with details of what is unfolded
    "self_attention": "attention",
    "cross_attention": "attention",
    "feed_forward": "feed_forward",
    "norm": "add_norm",
    "embedding": "embeddings",
    "answer": "decoding",
}


def living_picture(p: Page) -> None:
    """Draw the page's sentence; a click in it moves the shared focus, and opens the numbers of one layer."""
    inside = _unfolded_layer(p)
    layers = (inside,) if inside else ()
    picture = p.calc(living_picture_numbers, p.trace, inside=layers, name="picture")
    _show(p, living_picture_figure(picture, p.trace, p.focus, **_stop(p)), key=KEY)


def edited_picture(p: Page, specs: tuple[str, ...]) -> None:
    """Draw the living picture of the model with the edits in ``specs``, on its own output."""
    run = replace(p.run, target=None, strategy=None, edits=tuple(edits_from(p.checkpoint, specs)))
    trace = store.get(p.run, ("edited trace", *specs), lambda: trace_of(run))
    inside = _unfolded_layer(p)
    layers = (inside,) if inside and inside[1] < trace.n_layers(inside[0]) else ()
    picture = store.get(
        p.run, ("edited living picture", *specs, *layers), lambda: living_picture_numbers(trace, inside=layers)
    )
    figure = living_picture_figure(picture, trace, p.focus).with_metadata(cuts=[*cut_heads(specs)])
    _show(p, figure, key=f"{KEY} edited")


def cut_heads(specs: tuple[str, ...]) -> Iterator[dict[str, object]]:
    """Yield the heads whose output is removed, in the picture's format."""
    for spec in map(EditSpec.parse, specs):
        if spec.action in ("zero", "mean") or (spec.action == "drop" and spec.part != "feed_forward"):
            yield {"stack": spec.stack, "kind": spec.part, "layer": spec.layer, "head": spec.head}


def _unfolded_layer(p: Page) -> tuple[str, int] | None:
    unfolded = st.session_state.get(_INSIDE)
    inside = unfolded[1:] if unfolded and unfolded[0] == hash(p.run) else None
    return inside if inside and inside[1] < p.trace.n_layers(inside[0]) else None


def _stop(p: Page) -> dict[str, str]:
    return {"stop": choice.value(STOP), "step": name_step(p.focus)} if p.focus.lesson else {}


def _show(p: Page, figure: CanvasFigure, *, key: str) -> None:
    show_living_picture(figure, key=key, on_inside=partial(_unfold, hash(p.run)))


def living_picture_figure(
    picture: LivingPicture, trace: Trace, focus: Focus, *, links: bool = True, stop: str = "", step: str = ""
) -> CanvasFigure:
    """Return the figure that opens at ``focus``, with links to existing pages.

    ``stop`` is the point at which a lesson's ``step`` stops the picture, which then names the step to the lesson's bar.
    """
    focus, _missing = fit_trace(focus, trace)  # the page itself needs no token
    begin = {name: getattr(focus, name) for name in ("stack", "kind", "layer", "head", "token")}
    if stop:
        begin |= {"stop": stop, "step": step}
    existing = pages_of(trace.checkpoint.config) if links else ()
    leads = {part: page for part, page in LINKS.items() if page in existing}
    figure = living_picture_canvas(picture, begin=begin, links=leads, left_out=without_words(trace))
    read = {"sentence": trace.run.sentence if trace.run else "", "target": trace.text}
    return figure.with_metadata(read=read)  # for the caption of its exports: the page itself is about no sentence


def without_words(trace: Trace) -> LeaveOneOut | None:
    """Return the class of a short sentence without each word, or of an image without each patch."""
    run = trace.run
    if run is None or run.edits or run.checkpoint.is_guest or not run.checkpoint.config.n_classes:
        return None
    if len(trace.source) > MOST_TOKENS:
        return None
    make = partial(leave_one_out, run.checkpoint, run.sentence, pads=run.source_pads)
    return store.get(run, ("leave one out",), make)


def _unfold(run: int, layer: tuple[str, int]) -> None:
    st.session_state[_INSIDE] = (run, *layer)
