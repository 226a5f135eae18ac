"""The head and the row with which pages open a typed sentence: those that the Overview speaks of."""

from functools import partial

from transformer.attribution.leave_one_out import LeaveOneOut, leave_one_out
from transformer.errors import InputError, NotFiniteError
from transformer.heads.telling_cell import (
    TellingCell,
    clearest_cell,
    followed_rows,
    most_useful,
    telling_cell,
    telling_kind,
)
from transformer.runs.head_places import Head
from transformer.runs.run import Run
from transformer.runs.traces import Trace
from transformer.runs.tracing import is_long
from ui.compute.loading import load_trace
from ui.compute.store import store
from ui.shell import focus as shared_focus
from ui.shell.focus import Focus, opening_focus
from ui.shell.openings import has_place

MOST_TOKENS = 48  # in a sentence that is classified again without each of its words


def fit_head(focus: Focus, run: Run) -> Focus:
    """Return the focus at a head that attends to the word that Overview names, unless chosen.

    A third-party model opens as its kind does: searching all its maps may take long.
    """
    if not shared_focus.has_no_head():
        return focus
    try:
        found = _telling_cell(focus, run) if _is_searched(run) else None
    except (InputError, NotFiniteError):  # the page says so
        return focus
    return shared_focus.place_at(focus, found and found.place)


def telling_row(focus: Focus, run: Run) -> int:
    """Return the chosen row, or the one that Overview follows; in a stack that is read, the clearest."""
    if focus.token or not _is_searched(run) or has_place(focus.checkpoint, focus.sentence):
        return focus.token
    trace = load_trace(run)
    if focus.stack == telling_kind(trace)[0]:
        return _telling_cell(focus, run).query
    place = Head(focus.stack, focus.kind, focus.layer, focus.head)
    found = store.get(run, ("clearest cell", *place), lambda: clearest_cell(trace, place))
    return focus.token if found is None else found.query


def without_words(trace: Trace) -> LeaveOneOut | None:
    """Return the class of a short sentence without each word; ``None`` for an image."""
    run = trace.run
    if run is None or run.edits or run.checkpoint.foreign or not run.checkpoint.config.n_classes:
        return None
    if run.checkpoint.config.reads_images or len(trace.source) > MOST_TOKENS:
        return None
    make = partial(leave_one_out, run.checkpoint, run.sentence, pads=run.source_pads)
    return store.get(run, ("leave one out",), make)


def _is_searched(run: Run) -> bool:
    return not (run.checkpoint.foreign or is_long(run))


def _telling_cell(focus: Focus, run: Run) -> TellingCell:
    return store.get(run, ("telling cell",), lambda: _find(focus.checkpoint, run))


def _find(checkpoint: str, run: Run) -> TellingCell:
    """Search the layer of the opening, whose heads align words, or all layers of self-attention."""
    trace = load_trace(run)
    left_out = without_words(trace)
    stack, kind = telling_kind(trace)
    layer = min(opening_focus(checkpoint).layer, trace.n_layers(stack) - 1)
    at = None if left_out is None else left_out.decisive
    decisive = None if left_out is None or at is None else left_out.words[at].start
    rows = followed_rows(trace, layer=layer, decisive=decisive)
    found = telling_cell(trace, rows, (layer,) if kind == "cross" else range(trace.n_layers(stack)))
    return found if run.edits else most_useful(trace, found)
