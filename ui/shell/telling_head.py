"""The head and the row with which pages open a typed sentence."""

from transformer.errors import InputError, NotFiniteError
from transformer.guests.recorded_maps import RecordedMaps
from transformer.heads.telling_cell import TellingCell, telling_cell
from transformer.runs.head_places import Head
from transformer.runs.run import Run
from transformer.runs.tracing import is_long
from ui.compute.loading import load_trace
from ui.compute.store import store
from ui.shell import focus as shared_focus
from ui.shell.focus import Focus
from ui.shell.openings import has_place


def fit_head(focus: Focus, run: Run) -> Focus:
    """Return the focus at a head that attends from one word to another, if the reader has chosen none.

    In cross-attention the head of the checkpoint's opening aligns the words of any sentence. A third-party model opens
    as its kind does: searching all its maps may take long.
    """
    if not shared_focus.has_no_head():
        return focus
    try:
        if focus.kind == "cross" or not _is_searched(run):
            return shared_focus.place_at(focus, None)
        found = _telling_cell(run, focus.stack, focus.kind)
    except (InputError, NotFiniteError):  # the page says so
        return focus
    return shared_focus.place_at(focus, found and found.place)


def telling_row(focus: Focus, run: Run) -> int:
    """Return the row of a head that attends most clearly to another word, or the chosen row."""
    if focus.token or not _is_searched(run) or has_place(focus.checkpoint, focus.sentence):
        return focus.token
    place = Head(focus.stack, focus.kind, focus.layer, focus.head)
    found = _telling_cell(run, focus.stack, focus.kind, place)
    return focus.token if found is None else found.query


def _is_searched(run: Run) -> bool:
    return not (run.checkpoint.foreign or isinstance(run.checkpoint.model, RecordedMaps) or is_long(run))


def _telling_cell(run: Run, stack: str, kind: str, only: Head | None = None) -> TellingCell | None:
    name = ("telling cell", stack, kind, *(only or ()))
    return store.get(run, name, lambda: telling_cell(load_trace(run), stack, kind, only=only))
