"""A public server: disabled features, limits, waiting for a seat, and errors without server details."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import transformer
from tests.pages.conftest import is_fine, said
from tests.ui.test_jobs import SOON
from ui.compute import loading, uploads
from ui.compute.queue import Queue
from ui.server.settings import PUBLIC, Settings, public, settings, without_folders
from ui.server.streamlit_private import config
from ui.shell import admission

Open = Callable[..., AppTest]


# ---- settings -------------------------------------------------------------------------------------------------------


@pytest.fixture
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove every setting from the environment; ``checkpoints_folder`` leaves one behind."""
    for name in [name for name in os.environ if name.startswith("GLASSFORMER_")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("value", "open_to_all"), [("1", True), ("yes", True), ("true", True), ("0", False), ("", False)]
)
def test_what_makes_a_server_public(
    value: str, open_to_all: bool, nothing_set: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLASSFORMER_PUBLIC", value)
    assert public() is open_to_all
    assert settings() == Settings(public=open_to_all, **(PUBLIC if open_to_all else {}))


def test_limits_are_settings(nothing_set: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSFORMER_PUBLIC", "1")
    for name, value in {
        "JOBS": "4",
        "CHARACTERS": "300",
        "SESSIONS": "5",
        "IDLE_MINUTES": "3",
        "SENTENCES": "7",
        "RECORDING_MB": "50",
        "UPLOADS_MB": "60",
    }.items():
        monkeypatch.setenv(f"GLASSFORMER_{name}", value)
    wanted = {"characters": 300, "sessions": 5, "idle_minutes": 3, "sentences": 7, "recording_mb": 50, "uploads_mb": 60}
    assert settings() == Settings(public=True, jobs=4, **wanted)


# ---- nothing of one's own -------------------------------------------------------------------------------------------


def test_no_files_and_no_paths_and_the_page_says_why(
    public_server: None, open_app: Open, checkpoints_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_app("checkpoint")
    is_fine(app)
    assert not app.get("file_uploader") and not any(box.key == "typed folder" for box in app.text_input)
    assert {box.key for box in app.expander} & {"public", "upload"} == {"public"}
    assert "at most 1,000 characters" in said(app) and "at most 1 at a time" in said(app) and "60 visitors" in said(app)
    assert config.get_option("server.maxUploadSize") == 0  # Streamlit's own address for files
    with pytest.raises(transformer.CheckpointError, match="accepts no files"):
        uploads.keep({"config.json": b"{}"})
    with pytest.raises(transformer.CheckpointError, match="is not a directory"):
        loading.open_folder(str(checkpoints_folder / "tiny-gpt"))


def test_elsewhere_nothing_of_this_is_said(open_app: Open) -> None:
    assert {box.key for box in open_app("checkpoint").expander} & {"public", "upload"} == {"upload"}


# ---- texts ----------------------------------------------------------------------------------------------------------


def test_a_long_text_is_refused_wherever_it_comes_from(
    public_server: None, open_app: Open, tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLASSFORMER_CHARACTERS", "100")
    loading.limit_texts()
    app = open_app("attention", sentence="so " * 50)
    warned = " ".join(warning.value for warning in app.warning).replace("\\", "")
    assert "The sentence has 150 characters; at most 100 are allowed." in warned
    with pytest.raises(transformer.InputError, match="at most 100"):
        transformer.trace(tiny_checkpoint("gpt"), "so " * 50)
    is_fine(open_app("attention", sentence="The cat."))


# ---- errors ---------------------------------------------------------------------------------------------------------


def test_an_error_has_a_number_and_names_nothing_of_the_server(
    public_server: None, open_app: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: object) -> None:
        raise RuntimeError("torch 9.9 failed in /srv/app/secret.py")

    monkeypatch.setattr("ui.page.page.unlike_training", lambda *_: broken(_))
    app = open_app("attention")
    number = app.error[0].value.split("under the number ")[1][:6]
    assert f"number {number}" in caplog.text and "secret.py" in caplog.text
    shown = " ".join(element.value for kind in ("error", "code", "markdown", "caption") for element in app.get(kind))
    assert "secret.py" not in shown and "9.9" not in shown and "Traceback" not in shown


def test_a_checkpoint_that_cannot_be_opened_is_named_without_its_folder(
    public_server: None, open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "config.json").write_text("{}")
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path))
    app = open_app("attention")
    assert "empty" in app.error[0].value and str(tmp_path.parent) not in app.error[0].value.replace("\\", "")
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path / "no" / "such"))
    assert str(tmp_path.parent) not in open_app("attention").warning[0].value.replace("\\", "")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("/srv/app/checkpoints/en-fr is not a directory", "…/en-fr is not a directory"),
        ("[Errno 2] No such file: '/home/me/x.json'", "[Errno 2] No such file: '…/x.json'"),
        (r"C:\Users\me\x.json lacks", r"…\x.json lacks"),
        ("/home/Ada Lovelace/models/en-fr lacks a file", "…/en-fr lacks a file"),  # only as it is set
        ("shapes 3/4 and 1/2, encoder/decoder", "shapes 3/4 and 1/2, encoder/decoder"),
        ("see https://example.org/a/b", "see https://example.org/a/b"),
    ],
)
def test_folders_are_left_out_of_what_an_error_says(text: str, kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert without_folders(text) == text
    monkeypatch.setenv("GLASSFORMER_PUBLIC", "1")
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", f"/srv/our class{os.pathsep}/home/Ada Lovelace/models/")
    assert without_folders(text) == kept


# ---- the line for a seat --------------------------------------------------------------------------------------------


def test_a_visitor_without_a_seat_waits_and_is_let_in(
    public_server: None, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLASSFORMER_SESSIONS", "1")
    here = {"somebody", "somebody else", "I"}
    monkeypatch.setattr(admission, "is_connected", lambda who: who in here)
    monkeypatch.setattr(admission, "session_id", lambda: "I")
    assert admission.seats().ask("somebody") == 0
    assert admission.seats().ask("somebody else") == 1
    begun = time.monotonic()
    app = open_app("attention")
    assert "This server is full (seats: 1; waiting before you: 1)." in app.info[0].value
    assert not app.text_area and time.monotonic() - begun < SOON
    here -= {"somebody", "somebody else"}
    app.run()
    is_fine(app)
    assert app.text_input(key="sentence").value


def test_who_was_idle_lines_up_again_and_finds_the_view_as_it_was(
    public_server: None, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLASSFORMER_SESSIONS", "1")
    monkeypatch.setattr(admission, "is_connected", lambda who: who in here)
    monkeypatch.setattr(admission, "session_id", lambda: "I")
    now, here = [0.0], {"somebody", "I"}
    lasts = 60 * settings().idle_minutes
    seats = Queue(1, lasts=lasts, is_here=lambda who: who in here, clock=lambda: now[0])
    monkeypatch.setattr(admission, "seats", lambda: seats)
    app = open_app("attention", sentence="The sea.", layer="1", head="1")
    is_fine(app)
    now[0] = 20 * 60.0
    assert seats.ask("somebody") == 0
    app.run()
    assert "waiting before you: 0" in app.info[0].value
    here -= {"somebody"}
    app.run()
    is_fine(app)
    assert app.text_input(key="sentence").value == "The sea."
    assert {name: app.query_params[name] for name in ("layer", "head")} == {"layer": "1", "head": "1"}
