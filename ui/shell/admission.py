"""Admission to a server with a limited number of visitors at a time (``GLASSFORMER_SESSIONS``)."""

from functools import lru_cache

import streamlit as st

from ui.compute.queue import Queue
from ui.server.sent_files import guard_requests, take_refusal
from ui.server.settings import UNLIMITED, hosts, settings
from ui.server.streamlit_private import (
    config,
    is_connected,
    names_our_host,
    runs_a_fragment,
    session_id,
)
from ui.server.upload_folders import remove_abandoned_folders
from ui.shell.fragments import fragment
from ui.words.texts import common

LOOK_AGAIN = 5  # seconds


def admit() -> None:
    """Continue if there is a seat for this session; otherwise show its position in line and end the run.

    Every page and fragment calls this, which shows that the session is in use.
    """
    guard_requests()
    _know_hosts()
    _clean_up()
    if not names_our_host(st.context.headers.get("Host", "localhost")):  # the first one; Streamlit refuses the others
        st.stop()
    if settings().sessions < UNLIMITED and _place():
        fragment(_wait, run_every=LOOK_AGAIN)()
        st.stop()
    # A toast of a fragment would take the place of a style sheet of the page (ui/shell/fragments.py).
    if not runs_a_fragment() and (refusal := take_refusal(session_id())):
        st.toast(common(f"sent_files.{refusal.key}", most=refusal.most), icon=":material/upload:", duration="infinite")


@lru_cache(maxsize=1)
def seats() -> Queue:
    """Return the seats of this server; one that has been idle for long goes to a visitor who waits."""
    return Queue(settings().sessions, lasts=60 * settings().idle_minutes, is_here=lambda session: is_connected(session))


def _wait() -> None:
    """Admit the session as soon as possible; running keeps its position in line."""
    place = _place()
    if not place:
        st.rerun()
    st.info(common("public.full", sessions=settings().sessions, before=place - 1), icon=":material/hourglass_empty:")


def _place() -> int:
    return seats().ask(session_id())


@lru_cache(maxsize=1)
def _clean_up() -> None:
    """Remove abandoned folders under ``streamlit run``; ``deploy.serve`` does so when it starts."""
    remove_abandoned_folders()


@lru_cache(maxsize=1)
def _know_hosts() -> None:
    """Set the allowed hosts under ``streamlit run``, unless they were set by hand.

    ``deploy.serve`` does so before it listens.
    """
    if not config.get_option("server.allowedHosts"):
        config.set_option("server.allowedHosts", hosts(config.get_option("server.address")))
