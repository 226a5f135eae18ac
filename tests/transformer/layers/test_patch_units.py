"""Units that respond to where the ink of a patch is: the criteria, recomputed from recorded runs."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from tests.conftest import ROOT
from transformer.layers.patch_units import LEAST_ALIKE, PATCHES, SIDES, image_values, ink_of, on_side, patch_units
from ui.words.texts import pictures

IMAGES = [text for _, text in pictures()]


@pytest.fixture(scope="module")
def vit() -> transformer.Checkpoint:
    return transformer.load(ROOT / "checkpoints" / "vit-digits")


def test_values_of_several_images_are_those_of_each_alone(vit: transformer.Checkpoint) -> None:
    values = image_values(vit, IMAGES[:3])
    assert values.n_images == 3
    for number, image in enumerate(IMAGES[:3]):
        trace = transformer.trace(vit, image)
        patches, rows = list(trace.source.patches), slice(16 * number, 16 * number + 16)
        np.testing.assert_allclose(values.ink[rows], ink_of(trace.source))
        for layer, hidden in enumerate(values.hidden):
            recorded = trace.values(f"encoder.layers.{layer}.feed_forward.hidden")[patches]
            np.testing.assert_allclose(hidden[rows], recorded, atol=1e-4)


def test_the_sides_of_a_patch() -> None:
    left, even = [[1.0, 0.0], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]
    corner = [[0.0, 0.0], [0.0, 1.0]]  # both on the right and at the bottom
    found = {side: found.tolist() for side, found in zip(SIDES, on_side(np.array([left, even, corner])), strict=True)}
    assert found == {
        "left": [True, False, False],
        "right": [False, False, True],
        "top": [False, False, False],
        "bottom": [False, False, True],
    }


def test_the_strongest_patches_of_a_unit_have_their_ink_where_it_says(vit: transformer.Checkpoint) -> None:
    values = image_values(vit, IMAGES)
    half = {"left": np.s_[:, :, 0], "right": np.s_[:, :, 1], "top": np.s_[:, 0], "bottom": np.s_[:, 1]}
    other = {"left": "right", "right": "left", "top": "bottom", "bottom": "top"}
    for image in IMAGES[:10]:
        trace = transformer.trace(vit, image)
        found = patch_units(trace, values)
        assert found and len({one.side for one in found}) == len(found)
        for one in found:
            strongest = np.argsort(-values.hidden[one.layer][:, one.unit])[:PATCHES]
            ink = values.ink[strongest]
            more = ink[half[one.side]].mean(axis=-1) > ink[half[other[one.side]]].mean(axis=-1)
            assert more.sum() >= one.n_alike >= LEAST_ALIKE
            hidden = trace.values(f"encoder.layers.{one.layer}.feed_forward.hidden")[:, one.unit]
            assert hidden[one.position] == hidden[list(trace.source.patches)].max()
            assert values.share(one.side) < 0.5, "most patches are not like that"
