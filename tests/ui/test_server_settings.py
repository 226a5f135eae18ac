"""Settings of the environment are checked at the start; those of Streamlit are what the app relies on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
from streamlit import config

from tests.pages.conftest import is_fine
from ui.compute import store
from ui.server.settings import PREFIX, SettingError, Settings, settings

ROOT = Path(__file__).resolve().parents[2]
STOPPED = f"Glassformer was not started: {PREFIX}SESSIONS is '0'; it must be an integer ≥ 1, or be left out."
NUMBERS = [field.name for field in fields(Settings) if "int" in str(field.type)]


def test_what_is_left_out_is_left_open() -> None:
    assert settings({}) == Settings()
    assert settings({f"{PREFIX}JOBS": "  ", f"{PREFIX}HOSTS": ""}) == Settings()


@pytest.mark.parametrize("wrong", ["0", "-5", "abc", "two", "1.5", "٣", "1_0", "9" * 30])
def test_a_number_is_a_number(wrong: str) -> None:
    for name in NUMBERS:
        variable = PREFIX + name.upper()
        with pytest.raises(SettingError, match=re.escape(f"{variable} is {wrong[:40]!r}; it must be an integer ≥ 1")):
            settings({variable: wrong})
        assert getattr(settings({variable: " 7 "}), name) == 7


def test_hosts_are_names() -> None:
    assert settings({f"{PREFIX}HOSTS": "a.example.org, *.b.org,[::1]"}).hosts == ("a.example.org", "*.b.org", "[::1]")
    for wrong in ("http://a.org", "a.org:80", "a b", "a/b"):
        with pytest.raises(SettingError, match=f"{PREFIX}HOSTS names "):
            settings({f"{PREFIX}HOSTS": wrong})


@pytest.mark.parametrize("module", ["deploy.serve", "glassformer"])
def test_a_wrong_setting_stops_the_start_with_one_sentence(module: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", module, "--port", "1"], cwd=ROOT, env={**os.environ, f"{PREFIX}SESSIONS": "0"},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (run.returncode, run.stderr.strip()) == (1, STOPPED)


def test_streamlit_run_says_it_on_the_page(open_app, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}SESSIONS", "0")
    app = open_app("attention")
    assert [error.value for error in app.error] == [STOPPED]
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
    with pytest.raises(SettingError, match="redis"):
        settings({f"{PREFIX}REDIS": "redis://redis:6379"})


# ---- Streamlit's ---------------------------------------------------------------------------------------------------

STREAMLIT = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))


SET = {
    "runner.postScriptGC": (False, "it took longer than a page"),
    "runner.magicEnabled": (False, "no page is taken apart to look for values that stand alone"),
    "server.fileWatcherType": ("none", "a changed file does not pull the model from under a class"),
    "global.minCachedMessageSize": (500, "what the browser has already is not sent again"),
    "server.address": ("127.0.0.1", "only this machine"),
    "browser.gatherUsageStats": (False, "no usage is reported"),
    "server.maxUploadSize": (0, "until the app bounds how much is sent"),
    "server.disconnectedSessionTTL": (3600, "a phone that sleeps for a lesson keeps its session"),
    "server.enableAgentApi": (False, "only browsers drive the app"),
    "client.showErrorDetails": ("none", "a traceback is never shown"),
}


@pytest.mark.parametrize("name", SET)
def test_what_the_app_relies_on_is_set(name: str) -> None:
    (section, key), (value, why) = name.split("."), SET[name]
    assert STREAMLIT[section][key] == value, why


def test_every_setting_is_one_that_streamlit_knows() -> None:
    def names(values: dict, prefix: str = "") -> list[str]:
        return [
            name
            for key, value in values.items()
            for name in (names(value, f"{prefix}{key}.") if isinstance(value, dict) else [f"{prefix}{key}"])
        ]

    unknown = [name for name in names(STREAMLIT) if name not in config._config_options_template]
    assert unknown == []


def test_text_stands_out_from_its_ground() -> None:
    for mode in ("light", "dark"):
        theme = STREAMLIT["theme"][mode]
        for ground in (
            theme["backgroundColor"],
            theme["secondaryBackgroundColor"],
            theme["sidebar"]["backgroundColor"],
        ):
            assert _contrast(theme["textColor"], ground) >= 7  # WCAG AAA
            assert _contrast(theme["linkColor"], ground) >= 4.5
        assert _contrast(theme["primaryColor"], theme["backgroundColor"]) >= 4.5


def _contrast(one: str, other: str) -> float:
    """Return WCAG 2.2's contrast ratio of two colours, (lighter + 0.05) / (darker + 0.05) of luminances."""

    def luminance(colour: str) -> float:
        channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    brighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)
