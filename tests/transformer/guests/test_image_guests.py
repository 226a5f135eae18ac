"""Guests that read images: exact against ``transformers``, from the file to the logits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from tests.transformer.guests.their_numbers import images_equal_theirs
from tests.transformer.guests.tiny_image_guests import IMAGE_CLASSIFIERS, IMAGE_GUESTS, image_checkpoint, processor
from transformer import CheckpointError, InputError
from transformer.pictures.image_files import read_image
from transformer.pictures.image_patches import MASK_ID

KINDS = tuple(IMAGE_GUESTS)
HOUSE, BOAT = "image:house", "image:boat"


@pytest.mark.sample("kind", of=3, together=True)
@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_come_first_and_patches_have_the_colours_of_their_places(guest: Callable, kind: str) -> None:
    checkpoint = guest(kind)
    tokens, image = transformer.trace(checkpoint, HOUSE).source, checkpoint.config.image
    assert tokens.displays[: len(image.before)] == IMAGE_GUESTS[kind][3]
    assert [token.special for token in tokens] == [True] * len(image.before) + [False] * image.n_patches
    assert tokens.displays[len(image.before)] == "r1c1" and tokens.displays[-1] == f"r{image.rows}c{image.columns}"
    assert "from pixels to the first vectors" in str(checkpoint.model.not_exposed("encoder.embedding.projection"))
    cut = np.asarray(image.preprocessing.cut(read_image(HOUSE)))
    (height, width), last = image.patch, tokens[-1]
    corner = cut[(image.rows - 1) * height : image.rows * height, (image.columns - 1) * width : image.columns * width]
    cells = [tuple(int(cell[at : at + 2], 16) for at in (1, 3, 5)) for cell in last.pixels]
    np.testing.assert_allclose(np.mean(cells, axis=0), corner.mean(axis=(0, 1)), atol=1.5)


def test_a_hidden_patch_has_no_pixels_and_patches_of_two_images_can_be_mixed(
    guest: Callable,
) -> None:
    checkpoint = guest("vit")
    house, boat = (transformer.trace(checkpoint, text).source.ids for text in (HOUSE, BOAT))
    ids = torch.tensor([[*house[:5], MASK_ID, boat[6], *house[7:]]])
    found, of_house, of_boat = (
        checkpoint.model.images.pixels(each)[0] for each in (ids, torch.tensor([house]), torch.tensor([boat]))
    )
    assert not found[:, 8:16, 0:8].any(), "patch 5 is row 2, column 1"
    torch.testing.assert_close(found[:, 8:16, 8:16], of_boat[:, 8:16, 8:16], rtol=0, atol=0)
    torch.testing.assert_close(found[:, 16:], of_house[:, 16:], rtol=0, atol=0)


@pytest.mark.sample("kind", of=3, together=True)
@pytest.mark.parametrize("kind", KINDS)
def test_pixels_maps_and_outputs_are_theirs(guest: Callable, kind: str) -> None:
    images_equal_theirs(guest(kind))


@pytest.mark.parametrize("kind", IMAGE_CLASSIFIERS)
def test_classifiers_in_no_list_are_theirs_too(kind: str, tmp_path: Path) -> None:
    checkpoint = transformer.load(image_checkpoint(kind, tmp_path, IMAGE_CLASSIFIERS[kind]))
    assert checkpoint.config.class_names == ("cat", "dog")
    images_equal_theirs(checkpoint, tolerance=1e-5)


def test_a_sentence_or_an_image_that_is_not_here_is_refused(guest: Callable) -> None:
    for text, said in (("A cat.", "reads images, not text"), (f"image:{'0' * 64}", "no longer here")):
        with pytest.raises(InputError, match=said):
            transformer.trace(guest("vit"), text)


def test_settings_that_the_file_leaves_out_are_those_of_its_class(tmp_path: Path) -> None:
    """An old file names only its former class; without a file, the size is that of the config."""
    path = image_checkpoint("clip", tmp_path)
    old = {"feature_extractor_type": "CLIPFeatureExtractor", "size": 32, "crop_size": 32}
    for stored, shortest, size in ((old, 32, None), (None, 0, (32, 32))):
        file = path / "preprocessor_config.json"
        file.unlink() if stored is None else file.write_text(json.dumps(stored))
        image = transformer.load(path).config.image
        found = image.preprocessing
        assert (found.shortest, found.size, found.crop, found.resample) == (shortest, size, (32, 32), 3)
        assert found.mean == pytest.approx((0.48145466, 0.4578275, 0.40821073))
        assert image.assumed == (stored is None)


def test_a_network_whose_tokens_are_not_patches_is_refused(tmp_path: Path) -> None:
    import transformers

    sizes = {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2]}
    transformers.SwinModel(transformers.SwinConfig(**sizes, window_size=4)).save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(processor("vit").to_dict(), default=str))
    with pytest.raises(CheckpointError, match="not the patches"):
        transformer.load(tmp_path)
