"""What the person looks at: one ``Focus`` per browser session, shared by all pages and kept in the address.

The session holds the truth; the address is its copy. The address wins where it says something that was not lately
written there, i.e. when a copied address is opened, and when the browser goes back or forward. Streamlit empties it on
a change of page; then the session writes it again. Widgets are only ever set from the focus, never asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import asdict, dataclass, fields, replace

import streamlit as st

from charts.toolkit.words import _
from transformer.config import LEVELS, ModelConfig, PictureConfig
from transformer.runs.traces import STACKS, Trace
from ui.compute.loading import checkpoint_names, choosable_checkpoints, readable_config
from ui.shell.streamlit_private import page_hash, runs_a_script, went_back_or_forward
from ui.words.texts import ENGLISH, common, default_sentence, languages, pictures, quoted, take_language_from

MOST_PADS = 16
LARGEST = 10**9 - 1  # of a number in an address; one of a thousand digits would only fill the screen
LONGEST_IN_ADDRESS = 4000  # characters; browsers and chat programs cut or refuse much longer addresses

_PICTURE = re.compile(r"(?=.*[0-9])[0-9a-g]{64}")
_FOCUS, _WRITTEN, _NOTES, _NOTES_OF = "focus", "focus: addresses as written", "focus: notes", "focus: notes of"
# Who clicks twice at once sends the second click before the browser has heard of the address that the first one wrote.
_LATE = 8
_spoken: ContextVar[str | None] = ContextVar("spoken", default=None)  # the language of the focus


@dataclass(frozen=True)
class Focus:
    """Checkpoint, sentence and place in the model.

    ``checkpoint``: name of its folder. ``target``: what the decoder reads; empty lets the model answer. ``kind``:
    "self" or "cross". ``layer`` and ``head`` count from 0, as in the names of activations. ``token`` is a position in
    the sequence that ``stack`` reads. ``pads``: padding tokens added to the source. ``reads``, ``writes``: the
    languages of the sentence and of the answer, by the codes of a checkpoint of many languages; empty as it came.
    ``language``: the name of a folder of texts. ``presenter``: 1 for large letters and fewer controls. ``lesson``: the
    name of the one that is running, if any, and ``lesson_step`` where in it, from 1.
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
    reads: str = ""
    writes: str = ""
    language: str = ENGLISH
    presenter: int = 0
    lesson: str = ""
    lesson_step: int = 1

    @classmethod
    def from_address(cls, address: Mapping[str, str], *, default: Focus) -> tuple[Focus, tuple[str, ...]]:
        """The focus that an address asks for, and one line for each parameter that makes no sense."""
        values, notes = {}, []
        for field in fields(cls):
            if field.name not in address:
                continue
            text = address[field.name]
            if isinstance(getattr(default, field.name), int):
                try:
                    values[field.name] = min(max(0, int(text)), LARGEST)
                except ValueError:
                    notes.append(common("note.number", name=field.name, text=quoted(text)))
            else:
                values[field.name] = text
        return replace(default, **values), tuple(notes)

    def to_address(self, *, default: Focus) -> dict[str, str]:
        """Only what differs from ``default``, so that an address stays short; a huge sentence is left out."""
        return {
            name: str(value)
            for name, value in asdict(self).items()
            if value != getattr(default, name) and len(str(value)) <= LONGEST_IN_ADDRESS
        }


def fit_checkpoint(focus: Focus, names: Sequence[str]) -> tuple[Focus, tuple[str, ...]]:
    """The focus on a checkpoint that exists, with a line if the one asked for does not."""
    if not names or focus.checkpoint in names:
        return focus, ()
    note = common("note.checkpoint", name=quoted(focus.checkpoint), shown=repr(names[0]))
    return replace(focus, checkpoint=names[0]), (note,) if focus.checkpoint else ()


def fit_language(focus: Focus) -> tuple[Focus, tuple[str, ...]]:
    """The focus in a language that there are texts in, with a line if there are none in the one asked for."""
    if focus.language in languages():
        return focus, ()
    note = common("note.language", code=quoted(focus.language), known=", ".join(languages()))
    return replace(focus, language=ENGLISH), (note,)


def fit_sentence(focus: Focus) -> tuple[Focus, tuple[str, ...]]:
    """The focus on a picture where the model reads pictures, on a sentence where it reads text, with a line if it was
    on the other. What may be a picture with a slip stays, and the page says what is wrong with it."""
    config = readable_config(focus.checkpoint)
    if config is None:
        return focus, ()
    if not isinstance(config, PictureConfig):
        if not _PICTURE.fullmatch(focus.sentence):
            return focus, ()
        return replace(focus, sentence=default_sentence()), (common("note.no_picture"),)
    if re.fullmatch(rf"[{LEVELS[: config.n_levels]}\s]+", focus.sentence):
        return replace(focus, pads=0), ()
    blank, size = LEVELS[0] * config.picture_size**2, config.picture_size**2
    shown = next((text for _, text in pictures() if len(text) == size), blank)
    # A line only about a sentence that somebody gave: the first example is in nobody's way.
    given = focus.sentence != default_sentence()
    notes = (common("note.no_text", sentence=quoted(focus.sentence)),) if given else ()
    return replace(focus, sentence=shown, target="", pads=0), notes


def fit_model(focus: Focus, config: ModelConfig) -> tuple[Focus, tuple[str, ...]]:
    """The nearest place that this model has, with one line for each thing it does not have."""
    notes = []
    kinds = attention_kinds(config)
    if (focus.stack, focus.kind) not in kinds:
        near = next((pair for pair in kinds if pair[0] == focus.stack), kinds[0])
        # A model with one stack is not worth a line unless cross-attention was asked for: there is nothing to choose.
        if focus.stack not in STACKS or focus.kind != "self":
            missing = _(f"{focus.stack[:20]} {focus.kind[:20]}-attention")  # a typed address may hold anything
            notes.append(common("note.attention", missing=missing, shown=_(f"{near[0]} {near[1]}-attention")))
        focus = replace(focus, stack=near[0], kind=near[1])
    n_layers = config.n_encoder_layers if focus.stack == "encoder" else config.n_decoder_layers
    for name, count in (("layer", n_layers), ("head", config.heads_in(focus.stack))):
        value = getattr(focus, name)
        if value >= count:
            notes.append(common(f"note.{name}", value=value, last=count - 1))
            focus = replace(focus, **{name: count - 1})
    if focus.pads > MOST_PADS:
        notes.append(common("note.pads", value=focus.pads, most=MOST_PADS))
        focus = replace(focus, pads=MOST_PADS)
    return focus, tuple(notes)


def fit_trace(focus: Focus, trace: Trace) -> tuple[Focus, tuple[str, ...]]:
    """The nearest token that the focused stack read."""
    count = len(trace.tokens(focus.stack))
    if focus.token < count:
        return focus, ()
    note = common("note.token", value=focus.token, stack=common(f"focus.{focus.stack}"), last=count - 1)
    return replace(focus, token=max(0, count - 1)), (note,)


def attention_kinds(config: ModelConfig) -> tuple[tuple[str, str], ...]:
    """The (stack, kind) pairs of a model, in the order of the forward pass."""
    pairs = []
    if config.has_encoder:
        pairs.append(("encoder", "self"))
    if config.has_decoder:
        pairs.append(("decoder", "self"))
    if config.has_encoder and config.has_decoder:
        pairs.append(("decoder", "cross"))
    return tuple(pairs)


def default_focus(checkpoint: str = "") -> Focus:
    """What the app opens with, and what an address need not say: the first checkpoint and the first example, behind the
    first task of ``checkpoint`` where that one learned several."""
    names = checkpoint_names()
    first = "".join(tasks_of(checkpoint)[:1])
    return Focus(checkpoint=names[0] if names else "", sentence=first + default_sentence())


def default_of(address: Mapping[str, str]) -> Focus:
    """What an address leaves unsaid. It may name anything; what is no checkpoint here is not looked at."""
    name = address.get("checkpoint", "")
    return default_focus(name if name in choosable_checkpoints(name) else "")


def start_of(sentence: str, starts: Sequence[str]) -> str:
    """The task's prefix that a sentence begins with, or nothing."""
    return next((start for start in starts if sentence.startswith(start)), "")


def tasks_of(checkpoint: str) -> Sequence[str]:
    """The prefixes of the tasks that it learned."""
    config = readable_config(checkpoint)
    return () if config is None else config.task_prefixes


def _sentence_for(checkpoint: str, focus: Focus) -> str:
    """What another model reads of the same sentence: a task stays with the model that learned it."""
    if focus.sentence == default_focus(focus.checkpoint).sentence:
        return default_focus(checkpoint).sentence
    task = start_of(focus.sentence, tasks_of(focus.checkpoint))
    return focus.sentence if task in tasks_of(checkpoint) else focus.sentence.removeprefix(task)


def begin() -> Focus:
    """Once at the start of every run (``app.py``): agree with the address, fit the checkpoint, write the address.

    Before the navigation: the browser then opens the new page under the whole address at once. After it, the page would
    be opened without parameters first, and "back" would lead there.
    """
    address = _address()
    focus: Focus | None = st.session_state.get(_FOCUS)
    if st.session_state.get(_NOTES_OF) != _place(focus):
        st.session_state[_NOTES] = ()
    corrections: tuple[str, ...] = ()
    written = st.session_state.get(_WRITTEN, ())
    foreign = address not in written[-1:] if went_back_or_forward() else address and address not in written
    if focus is None or foreign:
        # First the language, because what the rest of the address has wrong is said in it.
        asked = address.get("language", ENGLISH)
        _keep(Focus(language=asked if asked in languages() else ENGLISH))
        focus, corrections = Focus.from_address(address, default=default_of(address))
    focus, untold = fit_language(focus)
    focus, missing = fit_checkpoint(focus, choosable_checkpoints(focus.checkpoint))
    focus, misread = fit_sentence(focus)
    return store(focus, corrections=(*corrections, *untold, *missing, *misread))


def current() -> Focus:
    """The focus of this browser session."""
    return st.session_state.get(_FOCUS) or default_focus()


def notes() -> tuple[str, ...]:
    """One line for each parameter that had to be corrected for what is looked at now."""
    return st.session_state.get(_NOTES, ())


def change(**values: object) -> None:
    """Change the focus, e.g. as ``on_click=change, kwargs={"head": 3}``; the next run shows it and writes the address.

    Another sentence, target or stack starts at its first token; another checkpoint has languages and tasks of its own.
    Raises ``TypeError`` for a name that ``Focus`` lacks.
    """
    if "checkpoint" in values:
        fitting = {"reads": "", "writes": "", "sentence": _sentence_for(str(values["checkpoint"]), current())}
        values = {name: new for name, new in fitting.items() if new != getattr(current(), name)} | values
    if values.keys() & {"sentence", "target", "stack", "writes"} and "token" not in values:
        values["token"] = 0
    _keep(replace(current(), **values))


def store(focus: Focus, *, corrections: Sequence[str] = ()) -> Focus:
    """Keep the focus in the session and copy it to the address, in one message and only where they differ."""
    if max(len(focus.sentence), len(focus.target)) > LONGEST_IN_ADDRESS:
        corrections = (*corrections, common("problem.long_address"))
    st.session_state[_NOTES] = tuple(dict.fromkeys((*st.session_state.get(_NOTES, ()), *corrections)))
    st.session_state[_NOTES_OF] = _place(focus)
    _keep(focus)
    wanted = focus.to_address(default=default_focus(focus.checkpoint))
    written = [one for one in st.session_state.get(_WRITTEN, ()) if one != wanted]
    st.session_state[_WRITTEN] = (*written[-_LATE:], wanted)
    if (found := _address()) != wanted:
        for name in found.keys() - wanted.keys():
            del st.query_params[name]
        if wanted:
            st.query_params.update(wanted)
    return focus


def _keep(focus: Focus) -> None:
    st.session_state[_FOCUS] = focus
    _spoken.set(focus.language)


def _place(focus: Focus | None) -> tuple:
    """The focus for which a correction holds. The page repeats the correction until the focus changes, because it may
    run again before the reader has read the line."""
    return focus, page_hash()


def _address() -> dict[str, str]:
    found = st.query_params.to_dict()  # at once: each look at one of them costs as much
    return {field.name: found[field.name] for field in fields(Focus) if field.name in found}


def _language() -> str:
    """Of the session that the running script serves; a script has a thread of its own, and so a context of its own."""
    if not runs_a_script():
        return ENGLISH
    if (spoken := _spoken.get()) is not None:  # a page needs a hundred texts, and access to the session is slow
        return spoken
    focus: Focus | None = st.session_state.get(_FOCUS)  # a fragment, which runs without its page
    return focus.language if focus else ENGLISH


take_language_from(_language)
