"""The reader's ``Focus``: one per browser session, shared by all pages and kept in the address.

The session is authoritative: the focus, and the choices of each page (``page_state``). The address is their copy. It
takes precedence if it contains something that was not recently written there, i.e. when an address is opened, and when
the browser goes back or forward. Widgets are set from the focus and never read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace

import streamlit as st

from charts.toolkit.numbers import whole
from transformer.config import LEVELS
from transformer.pictures import image_files
from transformer.pictures.image_files import is_image_text
from transformer.runs.masked_word import words_in
from ui.compute.loading import (
    IN_THE_REPOSITORY,
    REMOVED,
    RENAMED,
    checkpoint_names,
    choosable_checkpoints,
    readable_config,
)
from ui.server.settings import settings
from ui.server.streamlit_private import page_hash, resend_choices, runs_a_script, uninterrupted, went_back_or_forward
from ui.shell import address as shared_address
from ui.shell import page_state
from ui.shell.address import LONGEST, PAGE
from ui.shell.events import LARGEST
from ui.shell.openings import is_ready, opening_of, start_of
from ui.shell.own_files import bring_back
from ui.words.once_a_run import begin_run
from ui.words.texts import ENGLISH, common, languages, quote, speak, take_language_from

MAX_PADS = 16
# A choice on pages that begin at a token of their own: whether the default token was chosen, the first one or that of
# the checkpoint's opening. It belongs to checkpoint and sentence.
FIRST_CHOSEN = "lens_start"
LAST = -1  # value of ``token`` that means the last typed token
PLACE = ("stack", "kind", "layer", "head")
_SWITCHES = ("written", "presenter")  # fields that are 0 or 1
# Parameters of the view. An address without any of them shows the checkpoint's opening. An address that names part of a
# location defines all of it: the rest is the first head of the first layer, whatever the opening is. With a sentence
# alone, as people write it by hand, it opens at the head of the checkpoint's opening.
VIEW = ("sentence", "target", *PLACE, "token", "pads", "lesson")

# A text that is somewhat too long stays in its box, to be shortened. A session must not hold megabytes: if a text
# is more than this many times too long, only the readable part is kept.
_TOO_MUCH = 5
_CUT = "focus: what was cut"
_PICTURE = re.compile(r"(?=.*[0-9])[0-9a-g]{64}")
_SOUND = re.compile(r"sound:(melody|sweep|knocks|[0-9a-f]{64})")  # in links of versions that read sounds
_FOCUS, _WRITTEN, _NOTES, _NOTES_OF = "focus", "focus: addresses as written", "focus: notes", "focus: notes of"
# After a double click, the second click is sent before the browser has received the address that the first one wrote.
_LATE = 8
_ONLY_A_LESSON = "focus: the address names only a lesson"
NOTE, FINGERPRINT = "note", "fingerprint"  # what an instructor's link adds to the address of a view (share.py)
_DRAWN_IN = "focus: language of the last run"
_OWN_TEXT, _TYPED = "focus: sentence before a model that reads images", "focus: sentence that was typed"
CAME_FROM = "came_from"  # the field of ``Focus`` with the view before a lesson
CLASS = "class"  # code of the class that the reader has joined (ui/classroom/session.py)
NO_CHOICES = (NOTE, FINGERPRINT, PAGE, CLASS)
_CLASS_CODE = "class: code"
# Choices of pages in links of earlier versions, as parameter=value; a line says that such a choice is ignored.
REMOVED_CHOICES = re.compile(
    r"(embeddings objective|attention_guess|cell_writers|costs)=.*"
    r"|heads_(scrolls|whole|card_by|card_measure|layers_\d+)=.*|heads_scope=own"
    r"|attention_fires=space|scheme=alibi|compare_mode=caption"
)


@dataclass(frozen=True)
class Focus:
    """Checkpoint, sentence and location in the model.

    Attributes:
        checkpoint: Name of its folder.
        target: What the decoder reads; if empty, the model generates it.
        kind: "self" or "cross".
        layer: Index of the layer, from 0 as in the names of activations.
        head: Index of the head, from 0.
        token: Position in the sequence that ``stack`` reads; ``LAST`` until the length is known.
        pads: Number of padding tokens added to the source.
        masked: Number of the word that is masked for a model that fills in blanks, or "none"; empty for the default.
        reads: Language of the sentence, by the codes of a multilingual checkpoint; empty for its default.
        writes: Language of the output; empty for its default.
        way: "special" or "chat" if the sentence is more than text.
        system: System message of a chat.
        variables: Variables of a chat's template, as JSON.
        written: 1 if the maps include what a model generated after the sentence.
        language: Name of a folder of texts.
        presenter: 1 for large letters and fewer controls.
        lesson: Name of the running lesson, if any.
        lesson_step: Its step, from 1.
        came_from: Page and address of the view before the lesson, to which its end leads back (before_lesson.py).
    """

    checkpoint: str = ""
    sentence: str = "The cat sat on the mat."
    target: str = ""
    stack: str = "encoder"
    kind: str = "self"
    layer: int = 0
    head: int = 0
    token: int = 0
    pads: int = 0
    masked: str = ""
    reads: str = ""
    writes: str = ""
    way: str = ""
    system: str = ""
    variables: str = ""
    written: int = 1
    language: str = ENGLISH
    presenter: int = 0
    lesson: str = ""
    lesson_step: int = 1
    came_from: str = ""

    @classmethod
    def from_address(cls, address: Mapping[str, str], *, default: Focus) -> tuple[Focus, tuple[str, ...]]:
        """Return the focus in an address, and one line for each invalid parameter."""
        values, notes = {}, []
        for field in fields(cls):
            if field.name not in address:
                continue
            text = address[field.name]
            if isinstance(getattr(default, field.name), int):
                try:
                    values[field.name] = min(max(0, int(text)), 1 if field.name in _SWITCHES else LARGEST)
                except ValueError:
                    notes.append(common("note.number", name=field.name, text=quote(text)))
            else:
                values[field.name] = text
        return replace(default, **values), tuple(notes)

    def to_address(self, *, default: Focus) -> dict[str, str]:
        """Return only what differs from ``default``, to keep an address short, without huge sentences."""
        return {
            name: str(value)
            for name, value in asdict(self).items()
            if value != getattr(default, name) and len(str(value)) <= LONGEST
        }


NAMES = tuple(field.name for field in fields(Focus))


def fit_checkpoint(focus: Focus, names: Sequence[str]) -> tuple[Focus, tuple[str, ...]]:
    """Return the focus on an existing checkpoint, with a line if the requested one does not exist."""
    if not names or focus.checkpoint in names:
        return focus, ()
    if RENAMED.get(focus.checkpoint) in names:
        return replace(focus, checkpoint=RENAMED[focus.checkpoint]), ()
    missing = "checkpoint"
    if focus.checkpoint in REMOVED:
        missing = "removed"
    elif focus.checkpoint in IN_THE_REPOSITORY:
        missing = "in_repository"
    note = common(f"note.{missing}", name=quote(focus.checkpoint), shown=repr(names[0]))
    return replace(focus, checkpoint=names[0]), (note,) if focus.checkpoint else ()


def fit_language(focus: Focus) -> tuple[Focus, tuple[str, ...]]:
    """Return the focus in an existing language, with a line if the requested one does not exist."""
    if focus.language in languages():
        return focus, ()
    note = common("note.language", code=quote(focus.language), known=", ".join(languages()))
    return replace(focus, language=ENGLISH), (note,)


def fit_sentence(focus: Focus) -> tuple[Focus, tuple[str, ...]]:
    """Return the focus on an image if the model reads one, and on a sentence otherwise.

    Another input is replaced by that of the opening. A line says why, unless it was an example of the app. A text that
    may be an image with a typing error stays, and the page reports what is wrong.
    """
    config, text = readable_config(focus.checkpoint), focus.sentence
    if config is None:
        return focus, ()
    reason = "no_text"
    if not config.reads_images:
        is_sound = _SOUND.fullmatch(text)
        fits = not (is_sound or is_image_text(text) or _PICTURE.fullmatch(text))
        reason = "sounds_removed" if is_sound else "no_picture"
    elif config.is_guest:  # which reads files
        bring_back()
        names_file = text.startswith(image_files.PREFIX)
        fits, reason = names_file and image_files.is_kept(text), "image_gone" if names_file else reason
    else:
        fits = re.fullmatch(rf"[{LEVELS[: config.n_levels]}\s]+", text)
    if fits:
        return (replace(focus, pads=0) if config.reads_images else focus), ()
    opening = opening_focus(focus.checkpoint)
    changes = {"target": "", "pads": 0} if config.reads_images else {"target": opening.target}
    is_told = reason != "no_text" or not _is_ready(focus)
    notes = (common(f"note.{reason}", sentence=quote(text)),) if is_told else ()
    return replace(focus, sentence=opening.sentence, **changes), notes


def opening_focus(checkpoint: str = "") -> Focus:
    """Return the focus that the app, or a checkpoint, opens with.

    A third-party model that continues texts opens with the prompt alone, at the token that predicts the next one.
    """
    checkpoint = checkpoint or _first()
    opening, tasks = opening_of(checkpoint).first, tasks_of(checkpoint)
    task = "" if start_of(opening.sentence, tasks) else "".join(tasks[:1])
    focus = Focus(checkpoint=_first(), sentence=task + opening.sentence, target=opening.target, **opening.place)
    return replace(focus, token=LAST, written=0) if continues_prompts(checkpoint) else focus


def default_of(address: Mapping[str, str]) -> Focus:
    """Return the view that an address leaves out; an unknown checkpoint is ignored."""
    name = address.get("checkpoint", "")
    return left_out(name if name in choosable_checkpoints(name) else "", address.keys())


def left_out(checkpoint: str, named: Collection[str]) -> Focus:
    """Return what an address that names these parameters leaves out: the opening of the checkpoint.

    The opening's target and token belong to its sentence. So if an address names any part of the view, the defaults are
    an output that the model generates, and the first token. If it names part of a location, the default is the first
    head, whatever the opening is, so that printed links keep their meaning.
    """
    default = opening_focus(checkpoint)
    if set(VIEW) & {*named}:
        default = replace(default, target="", token=min(default.token, 0))
    if {*PLACE, "token"} & {*named}:
        default = replace(default, **{part: getattr(Focus, part) for part in PLACE})
    return default


def default_focus(checkpoint: str = "") -> Focus:
    """Return what an address leaves out if it names a place: the first head and token."""
    return left_out(checkpoint, PLACE)


def continues_prompts(checkpoint: str) -> bool:
    """Return whether a checkpoint is third-party and continues what it reads."""
    config = readable_config(checkpoint)
    return config is not None and config.is_guest and config.kind == "decoder-only"


def _first() -> str:
    return next(iter(checkpoint_names()), "")


def address_of(focus: Focus, *, whole: bool = False) -> dict[str, str]:
    """Return the fewest parameters from which ``from_address`` restores ``focus``, with ``default_of``.

    With ``whole``, they still do so if the opening of the checkpoint or the first checkpoint changes. Such an address
    is for other people, so it omits the view before the lesson.
    """
    first = focus.to_address(default=default_focus(focus.checkpoint))
    if whole:
        first.pop(CAME_FROM, None)
        short = {"sentence": focus.sentence} if len(focus.sentence) <= LONGEST else {}
        return {"checkpoint": focus.checkpoint, **short, "layer": str(focus.layer), **first}
    for named in ((), ("sentence",)) if not focus.lesson else ():  # a lesson alone would open its step again
        default = left_out(focus.checkpoint, named)
        shortest = focus.to_address(default=default)
        if left_out(focus.checkpoint, shortest.keys()) == default:
            return shortest
    return first if first.keys() & {*PLACE, "token"} else {**first, "layer": str(focus.layer)}


def with_task(sentence: str, focus: Focus) -> str:
    """Return an example with the current task prefix, unless it has its own."""
    tasks = tasks_of(focus.checkpoint)
    return sentence if start_of(sentence, tasks) else start_of(focus.sentence, tasks) + sentence


def tasks_of(checkpoint: str) -> Sequence[str]:
    """Return the prefixes of the tasks that a checkpoint learned."""
    config = readable_config(checkpoint)
    return () if config is None else config.task_prefixes


def _for_checkpoint(checkpoint: str, focus: Focus) -> dict[str, object]:
    """Return what changes with the checkpoint.

    An example is replaced by the new checkpoint's opening. The reader's own sentence stays, without a task that the
    other model did not learn; a location that was chosen stays, too.
    """
    opening = opening_focus(checkpoint)
    changes: dict[str, object] = {"reads": "", "writes": "", "way": "", "system": "", "variables": ""}
    changes["written"] = opening.written
    own_text = _own_text_for(checkpoint, focus)
    if own_text:
        return {**changes, **{name: getattr(opening, name) for name in (*PLACE, "target")}, "sentence": own_text}
    if _is_ready(focus):
        changes |= {name: getattr(opening, name) for name in VIEW if name != "lesson"}
        return changes
    task = start_of(focus.sentence, tasks_of(focus.checkpoint))
    if task not in tasks_of(checkpoint):
        changes["sentence"] = focus.sentence.removeprefix(task)
    if is_at_the_opening(focus):
        changes |= {name: getattr(opening, name) for name in PLACE}
    return changes


def _own_text_for(checkpoint: str, focus: Focus) -> str:
    """Return the reader's sentence for the first model of text after one of images; "" if none.

    It is remembered when the reader chooses a model that reads images.
    """
    now, new = readable_config(focus.checkpoint), readable_config(checkpoint)
    if now is None or new is None or now.reads_images == new.reads_images:
        return ""
    if new.reads_images:
        st.session_state[_OWN_TEXT] = "" if _is_ready(focus) else focus.sentence
        return ""
    return st.session_state.get(_OWN_TEXT, "")


def is_at_the_opening(focus: Focus) -> bool:
    """Return whether the reader has chosen no head."""
    opening = opening_focus(focus.checkpoint)
    return all(getattr(focus, name) == getattr(opening, name) for name in PLACE)


def _is_ready(focus: Focus) -> bool:
    """Return whether the sentence is one of the app's own, of any checkpoint, and not typed by the reader."""
    typed = st.session_state.get(_TYPED) == focus.sentence
    return not typed and is_ready(focus.sentence, tasks_of(focus.checkpoint))


def begin() -> Focus:
    """Begin a run (in ``app.py``): adopt the browser's address if it is new, and fit the checkpoint.

    The session is authoritative unless the browser has an address that was not recently written. Another click does not
    interrupt this, because the view would then be partly that of the address and partly the one before.
    """
    if runs_a_script():
        begin_run()
    with uninterrupted():
        return _adopt_address()


def _adopt_address() -> Focus:
    arrived = shared_address.parameters()
    focus: Focus | None = st.session_state.get(_FOCUS)
    if st.session_state.get(_NOTES_OF) != _place(focus):
        st.session_state[_NOTES] = ()
    corrections: tuple[str, ...] = ()
    known = st.session_state.get(_WRITTEN, ())
    if went_back_or_forward():
        foreign = arrived not in known[-1:]
    else:
        foreign = bool(arrived) and arrived not in known and not shared_address.is_opening()
    if focus is None or foreign:
        own = {name: values[-1] for name, values in arrived.items() if name in NAMES}
        # First the language, because errors in the rest of the address are explained in it.
        wanted_language = own.get("language", ENGLISH)
        _keep(Focus(language=wanted_language if wanted_language in languages() else ENGLISH))
        focus, corrections = Focus.from_address(own, default=default_of(own))
        choices = {name: values for name, values in arrived.items() if name not in (*NAMES, *NO_CHOICES)}
        if own.get("token") == "0":  # typed by hand: the app leaves the first token out
            choices.setdefault(FIRST_CHOSEN, ["1"])
        gone = [name for name, found in choices.items() if REMOVED_CHOICES.fullmatch(f"{name}={' '.join(found)}")]
        choices = {name: found for name, found in choices.items() if name not in gone}
        corrections += tuple(common("note.removed_choice", name=name) for name in gone)
        st.session_state[_ONLY_A_LESSON] = own.keys() & set(VIEW) == {"lesson"} and not choices
        page_state.take(choices)
        _know(arrived)
    focus, untold = fit_language(focus)
    if st.session_state.get(_DRAWN_IN) != focus.language:
        resend_choices()
        st.session_state[_DRAWN_IN] = focus.language
    focus, missing = fit_checkpoint(focus, choosable_checkpoints(focus.checkpoint))
    focus, misread = fit_sentence(focus)
    return store(focus, corrections=(*corrections, *untold, *missing, *misread))


def names_only_a_lesson() -> bool:
    """Return, once, whether the browser's address named a lesson and no view, as an instructor's does."""
    return bool(st.session_state.pop(_ONLY_A_LESSON, False))


def whole_address(page: str = "") -> dict[str, Sequence[str]]:
    """Return the address of this view: the focus, the choices of its page, and an instructor's additions."""
    added = {name: values for name, values in shared_address.parameters().items() if name in (NOTE, FINGERPRINT)}
    if code := class_code():
        added[CLASS] = [code]
    focus, choices = address_of(current()), page_state.choices(page)
    return {
        **{name: [value] for name, value in focus.items()},
        **{key: choices[key] for key in sorted(choices)},
        **added,
    }


def class_code() -> str:
    """Return the code of the class that this session has joined; "" if there is none."""
    return st.session_state.get(_CLASS_CODE, "")


def set_class_code(code: str) -> None:
    """Set the class of this session, and so of its address; "" for none."""
    st.session_state[_CLASS_CODE] = code


def write_address(*, opening: str = "") -> None:
    """Copy the view to the address, once per run after drawing, and in a fragment at every change.

    ``opening`` is the name of the page if it is only being opened.
    """
    _write(whole_address(), opening=opening)


def write_address_of(page: str) -> None:
    """Write the address of a page that is being left, unless its last run did; Back returns to it.

    A click on another page interrupts a run, which then has not written what was typed or chosen just before.
    """
    last = next(reversed(st.session_state.get(_WRITTEN, ())), {})
    address = whole_address(page) | {name: last[name] for name in (NOTE, FINGERPRINT) if name in last}
    if page_state.has_begun() and shared_address.without_long(address) != last:
        _write(address)


def _write(address: Mapping[str, Sequence[str]], *, opening: str = "") -> None:
    shared_address.write(address, opening=opening)
    if runs_a_script():
        _know(shared_address.parameters())


def _know(address: dict[str, list[str]]) -> None:
    """Remember a written address, so that a click that still carries it does not count as new."""
    written = [one for one in st.session_state.get(_WRITTEN, ()) if one != address]
    st.session_state[_WRITTEN] = (*written[-_LATE:], address)


def current() -> Focus:
    """Return the focus of this browser session."""
    return st.session_state.get(_FOCUS) or opening_focus()


def is_presenting() -> bool:
    """Return whether the presenter switch is on: large type and few controls, for a projector."""
    return bool(current().presenter)


def notes() -> tuple[str, ...]:
    """Return one line for each corrected parameter of the current view."""
    return st.session_state.get(_NOTES, ())


def change(**values: object) -> None:
    """Change the focus, e.g. as ``on_click=change, kwargs={"head": 3}``; the next run shows it.

    See ``with_changes``.
    """
    focus, lines = with_changes(current(), **values)
    _keep(focus)
    if lines:
        st.session_state[_NOTES], st.session_state[_NOTES_OF] = lines, _place(focus)
    st.session_state[_CUT] = " ".join(lines)


def type_sentence(sentence: str) -> None:
    """Change the sentence to what the reader has typed, who keeps it even if it is an example of the app."""
    change(sentence=sentence)
    st.session_state[_TYPED] = current().sentence


def select(**values: object) -> None:
    """Move the focus, in the callback of a figure; ``None`` and the current value change nothing."""
    focus = current()
    if new := {name: value for name, value in values.items() if value not in (None, getattr(focus, name))}:
        change(**new)


def select_sentence(sentence: str, token: int | None = None) -> None:
    """Show another sentence, for which the model generates the output, and a token of it."""
    select(sentence=sentence, target="", pads=0, token=token)


def with_changes(focus: Focus, **values: object) -> tuple[Focus, tuple[str, ...]]:
    """Return the focus with these values, and a line for each text that is too long to store.

    Another sentence, target or stack starts at its first token; another checkpoint has its own opening.

    Raises:
        TypeError: If ``Focus`` lacks a name.
    """
    if "checkpoint" in values:
        fitting = _for_checkpoint(str(values["checkpoint"]), focus)
        new = {name for name, value in fitting.items() if value != getattr(focus, name)} | {"token"}
        values = {name: value for name, value in fitting.items() if name in new} | values
    if "sentence" in values and "masked" not in values and not _keeps_masked_word(focus, str(values["sentence"])):
        values["masked"] = ""
    again = {"sentence", "masked", "target", "stack", "writes", "way", "system", "variables", "written"}
    if values.keys() & again and "token" not in values:
        values["token"] = default_focus(focus.checkpoint).token
    most, lines = settings().characters, []
    for name in ("sentence", "target", "system", "variables"):
        text = values.get(name)
        if isinstance(text, str) and len(text) > _TOO_MUCH * most:
            values[name] = text[:most]
            lines.append(common("problem.not_kept", count=whole(len(text)), most=whole(most)))
    return replace(focus, **values), tuple(lines)


def _keeps_masked_word(focus: Focus, sentence: str) -> bool:
    """Return whether the choice of the masked word also holds for an edited sentence."""
    if not focus.masked.isdecimal():
        return True
    number = int(focus.masked)
    before, after = words_in(focus.sentence)[number:], words_in(sentence)[number:]
    return before[:1] == after[:1]


def cut_line() -> str:
    """Return a line that the last typed text was shortened, or ""."""
    return st.session_state.get(_CUT, "")


def store(focus: Focus, *, corrections: Sequence[str] = ()) -> Focus:
    """Keep the focus in the session, and a line for each correction."""
    if max(map(len, (focus.sentence, focus.target, focus.system, focus.variables))) > LONGEST:
        corrections = (*corrections, common("problem.long_address"))
    _keep(focus)
    add_note(*corrections)
    return focus


def add_note(*lines: str) -> None:
    """Show lines on the page about corrections of the address, until the focus changes."""
    st.session_state[_NOTES] = tuple(dict.fromkeys((*notes(), *lines)))
    st.session_state[_NOTES_OF] = _place(current())


def _keep(focus: Focus) -> None:
    st.session_state[_FOCUS] = focus
    if runs_a_script():
        speak(focus.language)


def _place(focus: Focus | None) -> tuple:
    """Return the part of the focus for which a correction holds.

    The page repeats the correction until the focus changes, because it may run again before the reader has read the
    line.
    """
    return focus, page_hash()


def _language() -> str:
    """Return the session's language where ``begin`` has not run: in a callback or a fragment."""
    focus: Focus | None = st.session_state.get(_FOCUS) if runs_a_script() else None
    return focus.language if focus else ENGLISH


take_language_from(_language)
