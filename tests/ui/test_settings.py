"""Server settings that the app relies on."""

from __future__ import annotations

import tomllib

import pytest
from streamlit import config

from ui.compute.loading import REPOSITORY

SETTINGS = tomllib.loads((REPOSITORY / ".streamlit" / "config.toml").read_text(encoding="utf-8"))


SET = {
    "runner.postScriptGC": (False, "it took longer than a page"),
    "runner.magicEnabled": (False, "no page is taken apart to look for values that stand alone"),
    "server.fileWatcherType": ("none", "a changed file does not pull the model from under a class"),
    "global.minCachedMessageSize": (500, "what the browser has already is not sent again"),
    "server.address": ("127.0.0.1", "only this machine"),
    "browser.gatherUsageStats": (False, "nobody else hears of it"),
    "server.maxUploadSize": (0, "until the app bounds how much is sent"),
    "server.disconnectedSessionTTL": (3600, "a phone that sleeps for a lesson keeps its session"),
    "server.enableAgentApi": (False, "nobody but a browser drives the app"),
    "client.showErrorDetails": ("none", "a traceback is never shown"),
}


@pytest.mark.parametrize("name", SET)
def test_what_the_app_relies_on_is_set(name: str) -> None:
    (section, key), (value, why) = name.split("."), SET[name]
    assert SETTINGS[section][key] == value, why


def test_every_setting_is_one_that_streamlit_knows() -> None:
    def names(values: dict, prefix: str = "") -> list[str]:
        return [
            name
            for key, value in values.items()
            for name in (names(value, f"{prefix}{key}.") if isinstance(value, dict) else [f"{prefix}{key}"])
        ]

    unknown = [name for name in names(SETTINGS) if name not in config._config_options_template]
    assert unknown == []


def test_text_stands_out_from_its_ground() -> None:
    for mode in ("light", "dark"):
        theme = SETTINGS["theme"][mode]
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
