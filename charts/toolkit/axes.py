"""An axis over labelled positions: its title, and the label of each position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from charts.toolkit import style
from charts.toolkit.checks import require_same_length


@dataclass(frozen=True)
class Axis:
    """The title of an axis, and a label for each row or column, without which they are numbered."""

    title: str
    labels: Sequence[str] = ()

    def across(self, size: int) -> dict[str, Any]:
        """Return the settings of a horizontal axis of ``size`` positions."""
        if not self.labels:
            return {"title_text": self.title, "showgrid": False, "zeroline": False, "range": [-0.5, size - 0.5]}
        require_same_length("labels", self.labels, expected=size, of=f"places of the axis {self.title!r}")
        return style.label_axis(self.labels, title=self.title)

    def down(self, size: int) -> dict[str, Any]:
        """Return the settings of a vertical axis of ``size`` positions, the first at the top."""
        return {**self.across(size), "range": [size - 0.5, -0.5]}
