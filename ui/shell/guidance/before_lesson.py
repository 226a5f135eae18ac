"""The reader's view before a lesson: kept in the focus and the address, restored when the lesson ends.

It is the name of a page and the parameters of its address, ``attention?sentence=…&head=3``, so that it survives a
reload and a step back in the browser's history.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from urllib.parse import parse_qs, urlencode

from ui.compute.loading import readable_config
from ui.shell import page_state
from ui.shell.focus import NAMES, NO_CHOICES, Focus, address_of, default_of, opening_focus, with_changes
from ui.shell.page_state import Texts

_OF_LESSON = ("lesson", "lesson_step", "came_from")
_KEPT = ("language", "presenter")  # changes during a lesson are kept


def write_view(page: str, focus: Focus, choices: Mapping[str, Texts]) -> str:
    """Return a view as one text."""
    address = {name: [value] for name, value in address_of(replace(focus, lesson="", came_from="")).items()}
    return f"{page}?{urlencode({**address, **choices}, doseq=True)}"


def read_view(text: str) -> tuple[str, Focus, dict[str, Texts]]:
    """Return the page, the focus and the page's choices of a view, without invalid values."""
    page, _, query = text.partition("?")
    return page, *read_parameters(query, without=_OF_LESSON)


def read_parameters(query: str, *, without: Collection[str]) -> tuple[Focus, dict[str, Texts]]:
    """Return the focus in a query, without some of its parameters, and the page's choices."""
    found = parse_qs(query, keep_blank_values=True)
    own = {name: values[-1] for name, values in found.items() if name in NAMES and name not in without}
    focus, _notes = Focus.from_address(own, default=default_of(own))
    return focus, {name: tuple(values) for name, values in found.items() if name not in (*NAMES, *NO_CHOICES)}


def view_before_lesson(focus: Focus) -> str:
    """Return the view to restore after a lesson that begins now; consecutive lessons keep the first view."""
    if focus.lesson:
        return focus.came_from
    return write_view(page_state.current_page(), focus, page_state.choices())


def with_own_sentence(focus: Focus, *, given: str, page: str) -> str:
    """Return the view to restore, with a typed sentence instead of the one ``given`` by a step.

    A sentence for a model of another kind stays with the lesson. If a link opened the lesson, there is no view before
    it, and the typed sentence is restored on ``page``.
    """
    if focus.sentence == given:
        return focus.came_from
    if not focus.came_from:
        before = replace(opening_focus(focus.checkpoint), checkpoint=focus.checkpoint)
        before, _told = with_changes(before, sentence=focus.sentence, target=focus.target)
        return write_view(page, before, {})
    page, before, choices = read_view(focus.came_from)
    if _kind_of(before.checkpoint) != _kind_of(focus.checkpoint):
        return focus.came_from
    before, _told = with_changes(before, sentence=focus.sentence, target=focus.target)
    return write_view(page, before, choices)


def own_sentence(came_from: str, *, checkpoint: str) -> tuple[str, str] | None:
    """Return the reader's own sentence and target in the view to restore, if ``checkpoint`` can read them.

    The sentence with which a checkpoint opens does not count as the reader's own.
    """
    if not came_from:
        return None
    _page, before, _choices = read_view(came_from)
    is_own = before.sentence != opening_focus(before.checkpoint).sentence
    return (before.sentence, before.target) if is_own and _kind_of(before.checkpoint) == _kind_of(checkpoint) else None


def _kind_of(checkpoint: str) -> tuple[object, ...]:
    config = readable_config(checkpoint)
    return () if config is None else (type(config), config.kind, bool(config.n_classes))


def restored_focus(before: Focus) -> dict[str, object]:
    """Return what changes in the focus when ``before`` is restored."""
    return {name: getattr(before, name) for name in NAMES if name not in _KEPT}
