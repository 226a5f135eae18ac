"""Fixtures for tests of the toolkit, the canvas and shared figures."""

from tests.figures import (  # noqa: F401
    candidates,
    causal_view,
    every_setting_is_checked,
    figures,
    numbers,
    target,
    tokens,
)
