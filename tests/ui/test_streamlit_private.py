"""Undocumented parts of Streamlit are listed in one module, and its version is pinned."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import streamlit
from streamlit.runtime.app_session import AppSession, AppSessionState
from streamlit.runtime.pages_manager import PagesManager
from streamlit.testing.v1 import AppTest

from ui.server.streamlit_private import config, page_hash, runs_a_script, went_back_or_forward

ROOT = Path(__file__).resolve().parents[2]
APP = ("app.py", "glassformer", "pages", "views", "ui", "deploy")
DOCUMENTED = {"streamlit", "streamlit.delta_generator", "streamlit.errors"}


def files(*suffixes: str) -> list[Path]:
    inside = [path for name in APP for path in (ROOT / name).rglob("*")]
    return [path for path in (ROOT / "app.py", *inside) if path.suffix in suffixes]


def test_only_one_module_imports_what_is_not_documented() -> None:
    for path in files(".py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
        names = {node.module for node in imports if node.module.split(".")[0] == "streamlit"}
        names |= {
            "streamlit.config"
            for node in imports
            if "config" in {alias.name for alias in node.names} and node.module == "streamlit"
        }
        names |= {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
            if alias.name.startswith("streamlit.")
        }
        assert names <= DOCUMENTED or path.name == "streamlit_private.py", f"{path}: {names - DOCUMENTED}"


def test_the_version_is_pinned_to_its_minor() -> None:
    pinned = re.search(r"^streamlit~=(\d+\.\d+)\.0$", (ROOT / "requirements.in").read_text(), re.MULTILINE)
    assert pinned
    assert streamlit.__version__.startswith(f"{pinned[1]}.")


def test_outside_of_a_page_there_is_no_page() -> None:
    assert not runs_a_script()
    assert page_hash() == ""
    assert not went_back_or_forward()


def _typing() -> None:
    """Runs inside AppTest: a box whose callback is overtaken, as when the reader clicks elsewhere at once."""
    import streamlit as st
    from streamlit.runtime.scriptrunner import get_script_run_ctx

    import ui.server.streamlit_private  # noqa: F401

    def hear() -> None:
        get_script_run_ctx().script_requests.request_stop()
        st.session_state["heard"] = st.session_state["typed"]

    st.text_input("typed", key="typed", on_change=hear)
    st.session_state["runs"] = st.session_state.get("runs", 0) + 1


def test_a_callback_comes_to_its_end_though_its_script_is_overtaken() -> None:
    app = AppTest.from_function(_typing, default_timeout=60).run()
    app.text_input[0].set_value("A sentence.").run()
    assert app.session_state["heard"] == "A sentence."
    assert app.session_state["runs"] == 1, "the script itself is stopped"


@pytest.mark.parametrize("setting", ["none", "poll"])
def test_a_session_that_returns_watches_files_only_if_the_setting_says_so(setting: str) -> None:
    session = AppSession.__new__(AppSession)
    session._local_sources_watcher = session._stop_config_listener = session._stop_pages_listener = None
    session._state = AppSessionState.SHUTDOWN_REQUESTED  # nothing is left to end
    session._pages_manager = PagesManager(str(ROOT / "app.py"))
    before = config.get_option("server.fileWatcherType")
    config.set_option("server.fileWatcherType", setting)
    try:
        session.register_file_watchers()  # as the server does when a phone that slept returns
        assert (session._local_sources_watcher is None) is (setting == "none")
    finally:
        session.disconnect_file_watchers()
        config.set_option("server.fileWatcherType", before)
