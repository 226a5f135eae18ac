"""Environment settings are checked at the start; a wrong one stops the server with one sentence."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from tests.pages.conftest import is_fine
from ui.compute import store
from ui.server.settings import PREFIX, SettingError, Settings, settings

ROOT = Path(__file__).resolve().parents[2]
NUMBERS = [field.name for field in fields(Settings) if "int" in str(field.type)]


def test_what_is_left_out_is_left_open() -> None:
    assert settings({}) == Settings()
    assert settings({f"{PREFIX}JOBS": "  ", f"{PREFIX}HOSTS": ""}) == Settings()


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("wrong", ["0", "-5", "abc", "two", "1.5", "٣", "1_0", "9" * 30])
def test_a_number_is_a_number(name: str, wrong: str) -> None:
    variable = PREFIX + name.upper()
    with pytest.raises(SettingError, match=re.escape(f"{variable} is {wrong[:40]!r}; it must be an integer ≥ 1")):
        settings({variable: wrong})
    assert getattr(settings({variable: " 7 "}), name) == 7


def test_hosts_are_names() -> None:
    assert settings({f"{PREFIX}HOSTS": "a.example.org, *.b.org,[::1]"}).hosts == ("a.example.org", "*.b.org", "[::1]")
    for wrong in ("http://a.org", "a.org:80", "a b", "a/b"):
        with pytest.raises(SettingError, match=f"{PREFIX}HOSTS names "):
            settings({f"{PREFIX}HOSTS": wrong})


@pytest.mark.parametrize(
    ("name", "wrong"), [("SESSIONS", "0"), ("MODELS_MB", "abc"), ("THREADS", "two"), ("TRACES_MB", "-5")]
)
def test_a_wrong_setting_stops_the_start_with_one_sentence(name: str, wrong: str) -> None:
    environment = {**os.environ, PREFIX + name: wrong}
    for command in (["-m", "deploy.serve", "--port", "1"], ["-m", "glassformer", "--port", "1"]):
        run = subprocess.run(
            [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
        )
        assert run.returncode == 1
        assert run.stderr.strip() == (
            f"Glassformer was not started: {PREFIX}{name} is {wrong!r}; it must be an integer ≥ 1, or be left out."
        )


def test_streamlit_run_says_it_on_the_page(open_app, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}SESSIONS", "0")
    app = open_app("attention")
    assert [error.value for error in app.error] == [
        f"Glassformer was not started: {PREFIX}SESSIONS is '0'; it must be an integer ≥ 1, or be left out."
    ]
    monkeypatch.setenv(f"{PREFIX}SESSIONS", "3")
    is_fine(open_app("attention"))


def test_shelves_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}TRACES_MB", "-5")
    with pytest.raises(SettingError):
        store.limits()


def test_every_setting_is_explained() -> None:
    explained = set(re.findall(r"^\| `(GLASSFORMER_\w+)`", (ROOT / "docs/settings.md").read_text(), re.MULTILINE))
    assert {PREFIX + field.name.upper() for field in fields(Settings)} <= explained


def test_secrets_are_checked_and_never_repeated() -> None:
    for variable, wrong in (("INSTRUCTOR", "too-short"), ("REDIS", "http://:hidden@redis"), ("REDIS", "hidden")):
        with pytest.raises(SettingError, match=f"{PREFIX}{variable} ") as error:
            settings({f"{PREFIX}{variable}": wrong})
        assert wrong not in str(error.value)
    found = settings({f"{PREFIX}INSTRUCTOR": "maple-otter-47", f"{PREFIX}REDIS": "redis://:hidden@redis:6379"})
    assert (found.instructor, found.redis) == ("maple-otter-47", "redis://:hidden@redis:6379")
    assert "otter" not in repr(found) and "hidden" not in repr(found)


def test_redis_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ui.server.settings.find_spec", lambda name: None)
    with pytest.raises(SettingError, match="glassformer\\[class\\]"):
        settings({f"{PREFIX}REDIS": "redis://redis:6379"})
