"""Frame of every page: title, question, hints, tokens of the sentence, and error messages.

with page("attention", needs=("stack", "kind", "layer", "head", "token")) as p:
    show_figure(charts.attention.weights(p.trace.attention(p.focus.stack, p.focus.layer, p.focus.kind)), name="map")
"""

import logging
import random
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import transformer
from charts.toolkit.words import localize
from transformer.config import ModelConfig
from transformer.errors import NotExposedError
from transformer.files.once import once
from transformer.files.received_files import is_received
from transformer.runs.decoding_strategies import Greedy
from transformer.runs.head_places import Head
from transformer.runs.masked_word import MaskedWord, masked_word
from transformer.runs.run import Run
from transformer.runs.traces import Trace
from transformer.text.prompt import Prompt
from ui.classroom.class_bar import class_bar
from ui.compute.loading import (
    REPOSITORY,
    checkpoint_path,
    checkpoints_folder,
    for_one_person,
    found_here,
    load_checkpoint,
    load_trace,
    readable_config,
    typed_checkpoints,
)
from ui.page.kit import Kit
from ui.server.settings import public, without_folders
from ui.shell import focus as shared_focus
from ui.shell import page_state
from ui.shell.admission import admit
from ui.shell.fitting import fit_model, fit_trace
from ui.shell.focus import Focus, is_presenting
from ui.shell.focus_controls import (
    NEEDS,
    choose_masked_word,
    choose_reading,
    fit_reading,
    prompt_of,
    selectors,
    text_for,
    traits_of,
)
from ui.shell.frame import bring_canvas, frame
from ui.shell.guidance.glossary_panel import glossary_panel
from ui.shell.guidance.lesson_bar import lesson_bar, open_step, running_lesson
from ui.shell.navigation import ENTRIES, Entry, links_onward, mark_laboratory, navigation
from ui.shell.own_files import own_files
from ui.shell.sentence import sentence_box, spaces
from ui.shell.sentence_notes import needs_every_layer, reads_long_text, say_long_text, shows_one_layer, unlike_training
from ui.shell.share import share, show_what_a_link_says
from ui.shell.sidebar import sidebar
from ui.shell.strip import is_chosen, token_strip
from ui.words.glossary_terms import glossary, with_links
from ui.words.once_a_run import end_run, once_a_run
from ui.words.texts import PageText, as_plain, common, problem_text

WRITING = ("overview", "decoding")  # pages about generation
PROMPT_ONLY = Greedy(1)  # on these pages the recorded pass reads only the prompt
_OPENED = "page: the last that was drawn"  # key in the session
FRAME_STYLE, _PRESENTER_STYLE = (Path(__file__).with_name(f"{name}.css") for name in ("page", "presenter"))
_LOG = logging.getLogger(__name__)


class _Finished(Exception):
    """Ends the page."""


class Page(Kit):
    """Everything that a page works with, by name, so that a fragment or a callback may keep it.

    ``checkpoint`` and ``trace`` are looked up in ``ui.compute.store`` once per run of the script. They are shared by
    all sessions, so they are read-only, and this object does not keep them: what a session keeps between two runs
    (fragments, callbacks, session state) stays in memory as long as its tab is open, while the store drops what has not
    been used recently. See ``ui.shell.fragments``.
    """

    def __init__(self, name: str, focus: Focus) -> None:
        super().__init__()
        self.name = name
        self.focus = focus
        self.token_is_chosen = True  # whether the reader chose a token; otherwise the page may choose its initial one

    @once
    def text(self) -> PageText:
        """Texts of ``views/<name>/en.toml``, for this kind of model and output."""
        return text_for(self.name, readable_config(self.focus.checkpoint))

    @property
    def reads_pictures(self) -> bool:
        """Whether the model reads images, so that a token is a patch."""
        config = readable_config(self.focus.checkpoint)
        return config is not None and config.reads_images

    @property
    def reads_files(self) -> bool:
        """Whether the images that the model reads are files, not drawn in the app."""
        return self.reads_pictures and readable_config(self.focus.checkpoint).is_guest

    @property
    def encodes_sentences(self) -> bool:
        """Whether the model is an encoder without a head, whose output is a sentence vector."""
        return self.checkpoint.config.encodes_sentences

    @property
    def checkpoint(self) -> transformer.Checkpoint:
        """Checkpoint of the focus, with its languages and its prompt."""
        return _checkpoint_of(self.focus)

    @property
    def masked(self) -> MaskedWord | None:
        """The word that is masked for a model that fills in blanks, unless it reads the text as it was typed."""
        return _masked_word_of(self.focus)

    @property
    def sentence(self) -> str:
        """What the model reads: the typed text, ``focus.sentence``, with a blank in place of the masked word."""
        return self.focus.sentence if self.masked is None else self.masked.sentence

    def sentence_for(self, name: str) -> str:
        """Return what another checkpoint reads of the typed text."""
        masked = _mask_for(load_checkpoint(name), self.focus)
        return self.focus.sentence if masked is None else masked.sentence

    @property
    def run(self) -> Run:
        """The inputs of the trace that this kind of model uses; they are the key of derived results."""
        return _run_of(self.name, self.focus)

    @property
    def trace(self) -> Trace:
        """Trace of the focused sentence."""
        return _trace_of(self.name, self.focus)

    @property
    def reads_long_text(self) -> bool:
        """Whether the text is so long that only the layer that is shown is recorded."""
        return _is_long(self.name, self.focus)

    @property
    def selected_head(self) -> Head:
        """The head in focus."""
        return Head(self.focus.stack, self.focus.kind, self.focus.layer, self.focus.head)

    def word_ids(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a word that the reader typed; it gets a space before it, punctuation does not."""
        word = text.strip()
        return tuple(self.checkpoint.tokenizer.encode(word, continues=not word[0].isalnum())) if word else ()

    @property
    def checkpoint_place(self) -> str:
        """Return ``place_of`` this page's checkpoint."""
        return self.place_of(self.focus.checkpoint)

    @staticmethod
    def place_of(name: str) -> str:
        """Return the path of a checkpoint's directory as it is written in commands and snippets."""
        if name in found_here():
            return name  # a folder that ``transformer.load`` also finds
        if is_received(name):
            return "the/folder/that/was/uploaded"
        path = checkpoint_path(name)
        elsewhere = path.parent.resolve() != (REPOSITORY / "checkpoints").resolve()
        if name in typed_checkpoints() or (elsewhere and for_one_person()):  # others need not know the server's folders
            return str(path)
        return f"checkpoints/{name}"

    @property
    def load_line(self) -> str:
        """Return the Python line that loads this page's ``checkpoint``, after ``import transformer``."""
        spoken = {"source": self.focus.reads, "target": self.focus.writes}
        chosen = "".join(f", {name}={code!r}" for name, code in spoken.items() if code)
        line = f'checkpoint = transformer.load("{self.checkpoint_place}")\n'
        if (prompt := prompt_of(self.focus)) is not None:
            line += "from transformer.files.chats import Prompt, with_prompt\n\n"
            line += f"checkpoint = with_prompt(checkpoint, {prompt!r})\n"
        elif chosen:
            line += "from transformer.files.languages import with_languages\n\n"
            line += f"checkpoint = with_languages(checkpoint{chosen})\n"
        return line

    @property
    def preamble(self) -> str:
        """Return the Python code for ``checkpoint`` and ``trace`` of this page, with which its Python begins."""
        imports, sentence = "import transformer\n", ""
        if self.reads_files and self.focus.sentence in own_files():
            imports += "from transformer.pictures.image_files import image_text\n"
            sentence = 'image_text("the/file/of/the/image")'
        return f"{imports}\n{self.load_line}trace = {_python_of(self.run, sentence=sentence)}\n"

    def trace_of(self, run: Run, *, checkpoint: str = "checkpoint") -> Trace:
        """Return the trace of another run for ``calc``; ``checkpoint`` is the Python of its checkpoint."""
        return self.known(load_trace(run), _python_of(run, checkpoint), key=run)

    def say_notes(self) -> None:
        """Write the run's notes on its sentence, on a page without the token strip that usually shows them."""
        _say(map(localize, self.trace.notes))

    def set_focus(self, **values: object) -> NoReturn:
        """Change the shared focus and the address, and run the page again.

        In a widget's callback, which runs before the page does, use ``ui.shell.focus.change(**values)`` instead.
        """
        shared_focus.change(**values)
        st.rerun()

    def nothing_to_show(self, sentence: str) -> NoReturn:
        """Explain in one line why the page has nothing to show, and end it."""
        st.info(sentence, icon=":material/info:")
        self.finish()

    def finish(self) -> NoReturn:
        """End the page here."""
        raise _Finished


def _python_of(run: Run, checkpoint: str = "checkpoint", *, sentence: str = "") -> str:
    """Return the Python of a run's trace; ``sentence`` is that of its sentence, by default the text."""
    given = {
        "target": None if run.target is None else repr(run.target),
        "source_pads": run.source_pads or None,
        "strategy": None if run.strategy is None else "transformer.Greedy(1)",
    }
    more = "".join(f", {name}={value}" for name, value in given.items() if value is not None)
    return f"transformer.trace({checkpoint}, {sentence or repr(run.sentence)}{more})"


@once_a_run
def _checkpoint_of(focus: Focus) -> transformer.Checkpoint:
    return _open_cached(focus.checkpoint, focus.reads, focus.writes, prompt_of(focus))


@once_a_run
def _masked_word_of(focus: Focus) -> MaskedWord | None:
    return _mask_for(_checkpoint_of(focus), focus)


def _mask_for(checkpoint: transformer.Checkpoint, focus: Focus) -> MaskedWord | None:
    """Return the masked word; a lesson's questions are about the sentence as it is given."""
    return None if focus.lesson else masked_word(checkpoint, focus.sentence, focus.masked)


@once_a_run
def _open_cached(name: str, reads: str, writes: str, prompt: Prompt | None) -> transformer.Checkpoint:
    return load_checkpoint(name, reads=reads, writes=writes, prompt=prompt)


@once_a_run
def _run_with_output(name: str, focus: Focus) -> Run:
    """Return what a page records of a text that is not very long, even if the model cannot take it."""
    checkpoint, masked = _checkpoint_of(focus), _masked_word_of(focus)
    config = checkpoint.config
    target = focus.target if config.has_decoder else ""
    alone = config.kind == "decoder-only" and not (target or focus.written or name in WRITING)
    return Run(
        checkpoint,
        focus.sentence if masked is None else masked.sentence,
        target or None,
        strategy=PROMPT_ONLY if alone else None,
        source_pads=focus.pads if config.has_encoder else 0,
    )


@once_a_run
def _is_long(name: str, focus: Focus) -> bool:
    return reads_long_text(_run_with_output(name, focus))


@once_a_run
def _run_of(name: str, focus: Focus) -> Run:
    run = _run_with_output(name, focus)
    if run.strategy == PROMPT_ONLY and shows_one_layer(name) and _is_long(name, focus):
        return replace(run, output=False)  # the next token would need all layers
    return run


@once_a_run
def _trace_of(name: str, focus: Focus) -> Trace:
    return load_trace(_run_of(name, focus))


Place = Callable[[Page], tuple[str, int]]
Stack = Callable[[Page], str | None]
Test = Callable[[Page], bool]
Needs = Callable[[Page], Sequence[str]]


@contextmanager
def page(
    name: str,
    *,
    needs: Sequence[str] | Needs = (),
    strip: bool = True,
    marks: Place | None = None,
    begins: Place | None = None,
    only: Stack | None = None,
    predicts: Test | None = None,
) -> Iterator[Page]:
    """Draw the frame of a page and yield its ``Page``; an error becomes a sentence, never a traceback.

    Args:
        name: Name of the page.
        needs: Which of "stack", "kind", "layer", "head", "token" can be chosen, or a function that returns this once
            the checkpoint is open, if it depends on the page's own choices.
        strip: ``False`` for a page about the checkpoint rather than the sentence; its ``p.trace`` is made only on
            demand.
        marks: Which token of which stack the strip marks, if it is not the focused one.
        begins: Which token of which stack the page is about while the reader has chosen none. The focus that all pages
            share stays as it is.
        only: The only stack whose tokens the strip offers, if a click on another stack's tokens would change nothing.
        predicts: Whether the page names the rows of a decoder after the tokens that they predict; so does the strip.
    """
    if not callable(needs) and (unknown := set(needs) - set(NEEDS)):
        raise ValueError(f"page({name!r}) needs {sorted(unknown)}, which is unknown; choose from {', '.join(NEEDS)}")
    _draw_frame_if_alone(name)
    p = Page(name, shared_focus.current())
    complete = False
    try:
        with guard(), ExitStack() as waits:
            corner, lines = _draw_frame(
                p, waits, needs=needs, strip=strip, marks=marks, begins=begins, only=only, predicts=predicts
            )
            complete = True
        if not complete:
            shared_focus.write_address()
            st.stop()
        said_before = shared_focus.notes()
        with guard():
            yield p
        with lines:
            # notes about the page's own controls
            _say(line for line in shared_focus.notes() if line not in said_before)
        shared_focus.write_address()
        page_state.end()
        links_onward(p.name)
        with corner:  # last, after the page has written its state to the address
            share(p.focus.checkpoint, p.checkpoint.fingerprint)
    finally:
        end_run()


@contextmanager
def _skeleton(page: str) -> Iterator[None]:
    """Show a skeleton in place of a page that was just opened, until its model and trace are there."""
    place = st.empty()
    if st.session_state.get(_OPENED) != page:
        with place:
            st.skeleton(height=400)
    try:
        yield
    finally:
        place.empty()
        st.session_state[_OPENED] = page


def _draw_frame(
    p: Page,
    waits: ExitStack,
    *,
    needs: Sequence[str] | Needs,
    strip: bool,
    marks: Place | None,
    begins: Place | None,
    only: Stack | None,
    predicts: Test | None,
) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Draw everything above the page's own part; return the title's corner and the space for lines."""
    class_bar(p.name)
    with st.container(horizontal=True, vertical_alignment="center", key="page head"):
        st.title(p.text.title, anchor=False, width="content")
        st.markdown(f"##### {p.text.question}", width="stretch")
        look = st.container(width="content", key="page look")
        hints = st.container(horizontal=True, vertical_alignment="center", gap="xsmall", width="content")
        corner = st.container(width="content")
    with hints:
        # Before the model and the trace, which take time: the title does not move when they are ready.
        st.html(FRAME_STYLE)
        if is_presenting():
            st.html(_PRESENTER_STYLE)
    waits.enter_context(_skeleton(p.name))
    p.focus, lesson, corrections = running_lesson(p.focus)
    by_hand = shared_focus.names_only_a_lesson()
    if by_hand and lesson and lesson.steps[p.focus.lesson_step - 1].page == p.name:
        open_step(lesson, p.focus.lesson_step, notes=(*shared_focus.notes(), *corrections))
    p.__dict__.pop("text", None)  # a lesson may have chosen another kind of model
    step = lesson_bar(lesson, p.focus, page=p.name) if lesson else None
    corrections = (*corrections, *_open_checkpoint(p))
    show_what_a_link_says(p.checkpoint)
    p.focus, misfits = fit_model(p.focus, p.checkpoint.config)
    corrections = (*corrections, *misfits)
    if lacking := ENTRIES.get(p.name, Entry(p.name)).lacks(p.checkpoint.config):
        p.nothing_to_show(common(f"problem.{lacking}", name=as_plain(p.checkpoint.name)))
    choose_reading(p.focus, p.checkpoint, spaces()["sidebar"], writes=p.name in WRITING)
    p.focus, unmasked = choose_masked_word(p.focus, p.checkpoint, spaces()["beside"])
    corrections = (*corrections, *unmasked)
    if needs_every_layer(p.name) and p.reads_long_text:
        p.nothing_to_show(say_long_text(p.run, "page"))
    needs = needs(p) if callable(needs) else needs
    selectors(p.focus, p.checkpoint.config, needs=needs, room=spaces()["beside"])
    if lesson is None and not is_presenting():  # a lesson or an instructor says what to notice
        with look:
            _look_for(p.text, p.checkpoint.config)
    with hints:
        mark_laboratory(p.name)
        if not is_presenting():
            with st.container(width="content"):
                glossary_panel(p.name)
    if strip:
        p.focus, missing = fit_trace(p.focus, p.trace)
        corrections = (*corrections, *missing)
    bring_canvas()
    place = f"{p.name} {lesson.name} {p.focus.lesson_step}" if step else ""
    frame(place=place, step=step, presents=is_presenting(), view=_view(p, of_sentence=strip))
    shared_focus.store(p.focus, corrections=corrections)
    if begins and lesson is None and not is_chosen(p.focus):
        p.token_is_chosen = False
        p.focus = replace(p.focus, **dict(zip(("stack", "token"), begins(p), strict=True)))
    if strip and "token" in needs:
        places = {"place": marks(p) if marks else None, "only": only(p) if only else None}
        places["predicted"] = bool(predicts and predicts(p))
        token_strip(p.trace, p.focus, all_stacks="stack" not in needs, **places)
    lines = st.container(gap="small")  # even if empty, so that nothing below moves when lines disappear
    with lines:
        about_sentence = (*map(localize, p.trace.notes), unlike_training(p.trace, p.focus.checkpoint)) if strip else ()
        _say((*shared_focus.notes(), *about_sentence))
    return corner, lines


def _say(lines: Iterable[str]) -> None:
    for line in filter(None, lines):
        st.caption(f":material/info: {as_plain(line)}")


def _view(p: Page, *, of_sentence: bool) -> dict[str, str]:
    """Return the metadata for files of the page's figures."""
    read = {"sentence": p.sentence, "target": p.run.target or ""} if of_sentence else {}
    return {"checkpoint": p.focus.checkpoint, "fingerprint": p.checkpoint.fingerprint, **read}


@contextmanager
def guard() -> Iterator[None]:
    """Turn any error within the block into a sentence on the page; for fragments."""
    try:
        admit()  # the reader may have lost their seat in the meantime
        yield
    except _Finished:
        pass
    except transformer.InputError as error:
        if line := shared_focus.cut_line():  # shown before any other problem with the sentence
            st.warning(as_plain(line), icon=":material/content_cut:")
        st.warning(as_plain(problem_text(error)), icon=":material/edit:")
    except transformer.NotFiniteError as error:
        st.warning(as_plain(problem_text(error)), icon=":material/all_inclusive:")
    except NotExposedError as error:  # a guest of ``transformers`` has no such part
        st.info(as_plain(problem_text(error)), icon=":material/visibility_off:")
    except Exception as error:  # the reader gets a sentence about any error
        number = f"{random.randrange(16**6):06X}"
        _LOG.exception("a page failed, number %s", number)
        if public():
            st.error(common("problem.hidden", number=number), icon=":material/error:")
            return
        st.error(common("problem.unexpected", message=as_plain(problem_text(error))), icon=":material/error:")
        with st.expander(common("problem.details")):
            st.code("".join(traceback.format_exception(error)), language="text")


def _draw_frame_if_alone(page: str) -> None:
    """Draw the sidebar and the sentence if this page runs without ``app.py``.

    Streamlit knows that an app with a folder ``pages/`` has its own navigation only after ``app.py`` has run once. If
    the first request to a new server is the address of a page, Streamlit runs that file alone: this function then
    informs it and runs again. Otherwise the page was started by itself (``streamlit run pages/tokens.py``, a test).
    """
    if spaces():
        return
    if "restarted" not in st.session_state:
        st.session_state["restarted"] = True
        navigation()
        st.rerun()
    shared_focus.begin()
    page_state.enter(page)
    sidebar()
    sentence_box()


def _open_checkpoint(p: Page) -> tuple[str, ...]:
    """Open the checkpoint with the languages and the prompt of the focus; return lines for those it lacks."""
    if not p.focus.checkpoint:
        st.warning(common("problem.no_checkpoints", folder=as_plain(without_folders(str(checkpoints_folder())))))
        raise _Finished
    try:
        p.focus, unknown = fit_reading(p.focus, load_checkpoint(p.focus.checkpoint))
        p.checkpoint  # noqa: B018  (opens it)
    except (transformer.CheckpointError, OSError) as error:
        name, message = as_plain(p.focus.checkpoint), as_plain(problem_text(error))
        st.error(common("problem.checkpoint", name=name, message=message), icon=":material/error:")
        raise _Finished from error
    return unknown


def _look_for(text: PageText, config: ModelConfig) -> None:
    """Draw a button beside the title that unfolds what to notice in a box above the figure."""
    with st.expander(common("page.look_for"), icon=":material/lightbulb:", key="look for"):
        sentences = with_links(text.look_for_of(traits_of(config)), glossary(text.name))
        st.markdown("\n".join(f"- {sentence}" for sentence in sentences))
