"""The roles of all heads over many sentences, as the Heads page has them: saved with the checkpoint, or computed here.

What one session has computed, all have: it is kept by the checkpoint and the digest of the sentences.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.toolkit.numbers import whole
from transformer.errors import CheckpointError, InputError
from transformer.heads.head_roles import CorpusRoles, corpus_roles
from transformer.heads.role_files import load_corpus_roles
from transformer.text.sentence_files import SHIPPED, read_sentences, sentence_digest, split_sentences
from ui.compute.jobs import jobs
from ui.compute.store import store
from ui.server.limits import limits
from ui.shell.page import Page
from ui.words.catalogues import said
from ui.words.texts import as_plain, model_sentences

SCOPES = ("sentence", "corpus", "own")
_BATCH = 8  # small, so that a click on "stop" soon takes effect
_OWN, _WANTED, _SHOWN = (f"heads: {name}" for name in ("own sentences", "sentences to read", "list shown"))


@dataclass(frozen=True)
class Corpus:
    """Roles with the name of the list of sentences that they were found in, and the list where it is at hand."""

    roles: CorpusRoles
    name: str
    sentences: tuple[str, ...] = ()


def corpus_of(p: Page, scope: str) -> tuple[Corpus | None, DeltaGenerator]:
    """What is known of the sentences of ``scope``, and room for the progress bar of ``compute``.

    "sentence": what came with the checkpoint, and nothing is said where nothing did.
    """
    if scope == "sentence":
        return _saved(p)[0], st.container()
    found = _saved_or_computed(p) if scope == "corpus" else _own(p)
    if found is None:
        st.caption(p.text["corpus_unread"])
    return found, st.container()


def compute(p: Page, scope: str, room: DeltaGenerator) -> None:
    """Read the sentences of ``scope`` if they were asked for, with a bar and a way to stop; then run the page again.

    Call it last: the page stays as it is meanwhile, and whatever the person does ends the reading.
    """
    fingerprint, sentences = st.session_state.get(_WANTED) or ("", ())
    ready = read_sentences(SHIPPED) if scope == "corpus" else st.session_state.get(_OWN)
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
        room.warning(as_plain(said(error)), icon=":material/edit:")
        return
    st.rerun()


def _saved(p: Page) -> tuple[Corpus | None, str]:
    """The roles that came with the checkpoint; where there are none, why not."""
    command = f"`python -m transformer heads --checkpoint {p.checkpoint_place} --save`"
    try:
        found = load_corpus_roles(p.checkpoint)
    except CheckpointError as error:
        return None, p.text["stale"].format(problem=as_plain(said(error)), command=command)
    if found is None:
        return None, p.text["missing"].format(command=command)
    return Corpus(found.roles, found.sentence_file, _shipped(found.roles)), ""


def _shipped(roles: CorpusRoles) -> tuple[str, ...]:
    """The sentences that ship with this project (or the first of them), if the roles were found in just these."""
    sentences = read_sentences(SHIPPED)[: roles.n_sentences + roles.n_skipped]
    return sentences if sentence_digest(sentences) == roles.digest else ()


def _saved_or_computed(p: Page) -> Corpus | None:
    found, problem = _saved(p)
    if found is not None:
        return found
    sentences = read_sentences(SHIPPED)
    st.info(problem, icon=":material/info:")
    if roles := _computed(p, sentences):
        return Corpus(roles, SHIPPED.name, sentences)
    st.button(
        p.text["compute"].format(count=len(sentences)),
        icon=":material/play_arrow:",
        key="heads compute",
        on_click=_want,
        args=(p, sentences),
    )
    return None


def _own(p: Page) -> Corpus | None:
    """A form for the reader's own sentences. It folds away once they are read; the last list stays until the next."""
    text, allowed = p.text, limits()
    sentences: tuple[str, ...] = st.session_state.get(_OWN, ())
    if sentences and _computed(p, sentences):
        st.session_state[_SHOWN] = sentences
    shown: tuple[str, ...] = st.session_state.get(_SHOWN, ())
    roles = _computed(p, shown) if shown else None
    with st.expander(text["own"], icon=":material/edit_note:", expanded=roles is None), st.form("own", border=False):
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
    return Corpus(roles, text["own_name"], shown) if roles else None


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
    """For this checkpoint only: with another one the person asks again."""
    st.session_state[_WANTED] = (p.checkpoint.fingerprint, sentences)


def _forget() -> None:
    st.session_state[_WANTED] = None
