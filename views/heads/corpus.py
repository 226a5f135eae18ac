"""The roles of all heads over many sentences: saved with the checkpoint, or computed here.

Results are shared by all sessions, and stored by checkpoint and digest of the sentences.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.toolkit.numbers import whole
from transformer.errors import CheckpointError, InputError
from transformer.heads.head_roles import CorpusRoles, corpus_roles
from transformer.text.sentence_files import SHIPPED, read_sentences, sentence_digest, split_sentences
from ui.compute.jobs import jobs
from ui.compute.saved_roles import saved_roles
from ui.compute.store import store
from ui.page.page import Page
from ui.server.limits import limits
from ui.words.figure_texts import problem_text
from ui.words.texts import as_plain, model_sentences

SCOPES = ("sentence", "corpus", "own")
_BATCH = 8  # small, so that a click on "stop" soon takes effect
_OWN, _WANTED, _SHOWN = (f"heads: {name}" for name in ("own sentences", "sentences to read", "list shown"))


@dataclass(frozen=True)
class Corpus:
    """Roles over a list of sentences, with the list's name and, if available, its sentences."""

    roles: CorpusRoles
    name: str
    sentences: tuple[str, ...] = ()


def known_corpus(p: Page, scope: str) -> Corpus | None:
    """Return the roles over the sentences of ``scope``; for "sentence", those saved with the checkpoint."""
    if scope == "own":
        return _own(p)
    try:
        found = saved_roles(p.checkpoint)
    except CheckpointError:  # ``offer_reading`` reports what is wrong with the file
        found = None
    if found is not None:
        return Corpus(
            found.roles,
            found.sentence_file,
            _shipped(found.roles.n_sentences + found.roles.n_skipped, found.roles.digest),
        )
    if scope == "corpus" and (roles := _computed(p, _all_shipped())):
        return Corpus(roles, SHIPPED.name, _all_shipped())
    return None


def offer_reading(p: Page, scope: str, corpus: Corpus | None) -> DeltaGenerator:
    """Draw the controls for roles over ``scope``; return the container of the progress bar."""
    if scope == "corpus":
        _offer_shipped(p, is_known=corpus is not None)
    elif scope == "own":
        _own_form(p, is_known=corpus is not None)
    if scope != "sentence" and corpus is None:
        st.caption(p.text["corpus_unread"])
    return st.container()


def compute(p: Page, scope: str, room: DeltaGenerator) -> None:
    """Read the sentences of ``scope`` if requested, with a stop button; then run the page again.

    Call this last: the page does not change while it runs, and any action of the reader stops it.
    """
    if scope == "sentence":
        return
    fingerprint, sentences = st.session_state.get(_WANTED) or ("", ())
    ready = _all_shipped() if scope == "corpus" else st.session_state.get(_OWN)
    if (fingerprint, sentences) != (p.checkpoint.fingerprint, ready) or _computed(p, sentences):
        return
    text, checkpoint = p.text, p.checkpoint

    def work(report: Callable[[int, int], None]) -> CorpusRoles:
        return corpus_roles(checkpoint, sentences, batch_size=_BATCH, progress=report)

    try:
        with room:
            jobs.result(
                checkpoint,
                _name(sentences),
                work,
                saying=lambda done, total: text["reading"].format(done=done, total=total),
                on_cancel=_forget,
            )
    except InputError as error:
        _forget()
        room.warning(as_plain(problem_text(error)), icon=":material/edit:")
        return
    st.rerun()


@lru_cache(maxsize=1)
def _all_shipped() -> tuple[str, ...]:
    return read_sentences(SHIPPED)


@lru_cache(maxsize=16)
def _shipped(count: int, digest: str) -> tuple[str, ...]:
    """Return the first ``count`` sentences of the project's list if ``digest`` is theirs."""
    sentences = _all_shipped()[:count]
    return sentences if sentence_digest(sentences) == digest else ()


def _offer_shipped(p: Page, *, is_known: bool) -> None:
    """Write why the checkpoint has no usable roles, and offer to read the sentences here."""
    command = f"`python -m transformer heads --checkpoint {p.checkpoint_place} --save`"
    try:
        if saved_roles(p.checkpoint) is not None:
            return
        problem = p.text["missing"].format(command=command)
    except CheckpointError as error:
        problem = p.text["stale"].format(problem=as_plain(problem_text(error)), command=command)
    st.info(problem, icon=":material/info:")
    if not is_known:
        st.button(
            p.text["compute"].format(count=len(_all_shipped())),
            icon=":material/play_arrow:",
            key="heads compute",
            on_click=_want,
            args=(p, _all_shipped()),
        )


def _own(p: Page) -> Corpus | None:
    """Return the reader's own sentences; the last list stays until the next one."""
    sentences: tuple[str, ...] = st.session_state.get(_OWN, ())
    if sentences and _computed(p, sentences):
        st.session_state[_SHOWN] = sentences
    shown: tuple[str, ...] = st.session_state.get(_SHOWN, ())
    roles = _computed(p, shown) if shown else None
    return Corpus(roles, p.text["own_name"], shown) if roles else None


def _own_form(p: Page, *, is_known: bool) -> None:
    """Draw a form for the reader's own sentences, collapsed once they have been read."""
    text, allowed = p.text, limits()
    with st.expander(text["own"], icon=":material/edit_note:", expanded=not is_known), st.form("own", border=False):
        typed = st.text_area(
            text["own_label"].format(most=allowed.sentences),
            height=160,
            placeholder=model_sentences()["corpus"],
            key="heads own text",
            persist_state="session",
        )
        if st.form_submit_button(text["own_button"], icon=":material/play_arrow:"):
            if len(typed) > allowed.characters:
                problem = text["own_too_long"].format(count=whole(len(typed)), most=whole(allowed.characters))
                st.warning(problem, icon=":material/edit:")
            else:
                _submit(p, split_sentences(typed)[: allowed.sentences])
    if len(typed) <= allowed.characters and (count := len(split_sentences(typed))) > allowed.sentences:
        st.caption(text["own_cut"].format(most=allowed.sentences, count=count))


def _submit(p: Page, lines: tuple[str, ...]) -> None:
    if not lines:
        st.warning(p.text["own_empty"], icon=":material/edit:")
        return
    st.session_state[_OWN] = lines
    _want(p, lines)
    if _computed(p, lines):
        st.rerun()


def _computed(p: Page, sentences: Sequence[str]) -> CorpusRoles | None:
    return store.known(p.checkpoint, _name(sentences))


def _name(sentences: Sequence[str]) -> tuple[str, str]:
    return "corpus", sentence_digest(sentences)


def _want(p: Page, sentences: tuple[str, ...]) -> None:
    """Request the reading for this checkpoint only; another checkpoint needs another request."""
    st.session_state[_WANTED] = (p.checkpoint.fingerprint, sentences)


def _forget() -> None:
    st.session_state[_WANTED] = None
