"""Server settings that the app relies on."""

from __future__ import annotations

import tomllib

from streamlit import config

from ui.compute.loading import REPOSITORY

SETTINGS = tomllib.loads((REPOSITORY / ".streamlit" / "config.toml").read_text(encoding="utf-8"))


def test_no_garbage_collection_after_every_run() -> None:
    assert SETTINGS["runner"]["postScriptGC"] is False
    assert config._config_options_template["runner.postScriptGC"].default_val is True


def test_no_page_is_taken_apart_to_look_for_values_that_stand_alone() -> None:
    assert SETTINGS["runner"]["magicEnabled"] is False


def test_a_changed_file_does_not_pull_the_model_from_under_a_class() -> None:
    assert SETTINGS["server"]["fileWatcherType"] == "none"


def test_what_the_browser_has_already_is_not_sent_again() -> None:
    assert SETTINGS["global"]["minCachedMessageSize"] == 500
    assert config._config_options_template["global.minCachedMessageSize"].default_val == 10_000


def test_only_this_machine_and_nobody_else_hears_of_it() -> None:
    assert SETTINGS["server"]["address"] == "127.0.0.1"
    assert SETTINGS["browser"]["gatherUsageStats"] is False
    assert SETTINGS["server"]["maxUploadSize"] == 0, "until the app bounds how much is sent"


def test_a_phone_that_sleeps_for_a_lesson_keeps_its_session() -> None:
    assert SETTINGS["server"]["disconnectedSessionTTL"] == 3600
    assert config._config_options_template["server.disconnectedSessionTTL"].default_val == 120


def test_nobody_but_a_browser_drives_the_app() -> None:
    assert SETTINGS["server"]["enableAgentApi"] is False


def test_a_traceback_is_never_shown() -> None:
    assert SETTINGS["client"]["showErrorDetails"] == "none"


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
