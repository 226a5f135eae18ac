"""Fixtures for the figures of the pages."""

from tests.figures import (  # noqa: F401
    candidates,
    causal_view,
    every_setting_is_checked,
    figures,
    numbers,
    target,
    tokens,
)
