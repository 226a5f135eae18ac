"""Larger letters and lines for Altair figures, as ``charts.toolkit.style.enlarge`` makes them for Plotly's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from charts.toolkit.style import TEXT_SIZE

if TYPE_CHECKING:
    import altair as alt

_USUAL = {"labelFontSize": TEXT_SIZE, "titleFontSize": TEXT_SIZE}  # where a figure says nothing
_SCALED = ("fontSize", "labelFontSize", "titleFontSize", "strokeWidth", "height", "minExtent", "maxExtent", "size")


def enlarge(figure: alt.TopLevelMixin, *, factor: float) -> Any:
    """A copy with every font, line and point and the height ``factor`` times as large, for the back of a room."""
    if not factor > 0:
        raise ValueError(f"factor is {factor!r}; a figure can only be enlarged by a number greater than 0")

    def scaled(node: Any) -> Any:
        if isinstance(node, dict):
            return {
                name: value
                if name in ("datasets", "values")
                else value * factor
                if _is_size(name, value)
                else scaled(value)
                for name, value in node.items()
            }
        return [scaled(one) for one in node] if isinstance(node, list) else node

    specification = scaled(figure.to_dict())
    config = specification.setdefault("config", {})
    for part in ("axis", "legend"):
        for name, size in _USUAL.items():
            config.setdefault(part, {}).setdefault(name, size * factor)
    return type(figure).from_dict(specification, validate=False)


def _is_size(name: str, value: Any) -> bool:
    return name in _SCALED and isinstance(value, int | float) and not isinstance(value, bool)
