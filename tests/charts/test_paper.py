"""Altair figures for a printed column."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from charts.toolkit.paper import PRINT, paper_svg
from tests.charts.test_style import _oklab as oklab
from views.training.curve_figures import loss_curves

SVG = "{http://www.w3.org/2000/svg}"
HISTORY = pd.DataFrame({"step": [1, 1000], "train_loss": [3.0, 2.5], "dev_loss": [3.0, 2.25]})


@pytest.mark.slow
@pytest.mark.parametrize(("millimetres", "points"), [(84, 8), (174, 10)])
def test_the_figure_is_as_wide_as_asked_and_its_letters_as_large(millimetres: int, points: int) -> None:
    title = "Figure 1: the loss & <what> it was, over all of the steps that were taken, in one long line"
    root = ElementTree.fromstring(paper_svg(loss_curves(HISTORY), title=title, millimetres=millimetres, points=points))
    assert root.get("width") == f"{millimetres}mm"
    assert float(root.get("viewBox").split()[2]) == pytest.approx(millimetres * 96 / 25.4, abs=1)
    assert root.find(f"{SVG}rect").get("fill") == "#FFFFFF"
    texts = [element for element in root.iter(f"{SVG}text") if element.text]
    lines = [span.text for element in root.iter(f"{SVG}text") for span in element.iter(f"{SVG}tspan")]
    assert " ".join(lines) == title
    sizes = [float(element.get("font-size").removesuffix("px")) for element in texts]
    assert sizes == pytest.approx([points * 96 / 72] * len(sizes))
    assert {element.get("fill") for element in texts} <= {"#000", "#000000"}


def test_no_title_leaves_no_room_for_one() -> None:
    heights = [
        float(ElementTree.fromstring(paper_svg(loss_curves(HISTORY), title=title)).get("height").removesuffix("mm"))
        for title in ("", "a title")
    ]
    assert heights[0] < heights[1]


def test_a_size_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="0 mm"):
        paper_svg(loss_curves(HISTORY), millimetres=0)


def test_the_scale_of_print_begins_at_white_and_gets_darker_in_even_steps_also_in_grey() -> None:
    points = np.array([oklab(colour) for colour in PRINT])
    steps = np.diff(points[:, 0])
    assert points[0, 0] > 0.97 and points[-1, 0] < 0.3
    assert steps.max() < -0.03 and steps.min() / steps.max() < 1.3
