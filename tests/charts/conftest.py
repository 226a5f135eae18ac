"""What the toolkit, the canvas and the shared figures are tested with."""

from tests.figures import (  # noqa: F401
    candidates,
    causal_view,
    every_setting_is_checked,
    figures,
    numbers,
    target,
    tokens,
)
