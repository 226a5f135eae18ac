"""Guests that read images: exact against ``transformers``, from the file to the logits."""

from __future__ import annotations

import copy
import json
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import transformer
from tests.transformer.guests.their_numbers import compare_images
from tests.transformer.guests.tiny_image_guests import IMAGE_GUESTS, image_checkpoint, network, processor
from transformer import CheckpointError, InputError
from transformer.pictures.image_files import image_text, read_image
from transformer.pictures.image_patches import MASK_ID
from transformer.pictures.preprocessing import preprocessing_of

KINDS = tuple(IMAGE_GUESTS)
HOUSE, BOAT = "image:house", "image:boat"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("images")


@pytest.fixture(scope="module")
def opened(folder: Path) -> dict[str, transformer.Checkpoint]:
    return {kind: transformer.load(image_checkpoint(kind, folder)) for kind in KINDS}


def noise(width: int, height: int) -> str:
    """Return the text of an image of noise."""
    pixels = np.random.default_rng(0).integers(0, 255, (height, width, 3), dtype=np.uint8)
    file = BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return image_text(file.getvalue())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [(97, 61), (61, 97), (32, 32), (5, 200), (16, 16)])
def test_pixels_are_those_of_the_image_processor(
    opened: dict[str, transformer.Checkpoint], kind: str, size: tuple[int, int]
) -> None:
    """The tolerance is one rounding of float32: the same operations of Pillow and NumPy in the same order."""
    image = read_image(noise(*size))
    expected = torch.from_numpy(np.asarray(processor(kind)(image)["pixel_values"][0]))
    found = opened[kind].config.image.preprocessing.pixels(image)
    assert found.shape == expected.shape
    assert float((found - expected).abs().max()) <= 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_maps_and_outputs_are_those_of_the_network(opened: dict[str, transformer.Checkpoint], kind: str) -> None:
    checkpoint = opened[kind]
    whole = network(kind)
    whole.set_attn_implementation("eager")
    tower = getattr(whole, "vision_model", whole)
    pixels = torch.from_numpy(np.asarray(processor(kind)(read_image(BOAT))["pixel_values"]))
    with torch.no_grad():
        expected = tower(pixels, output_attentions=True)
    trace = transformer.trace(checkpoint, BOAT)
    for layer, weights in enumerate(expected.attentions):
        found = trace.values(f"encoder.layers.{layer}.self_attention.weights")
        np.testing.assert_array_equal(found, weights[0].numpy())
    if checkpoint.config.n_classes:
        np.testing.assert_array_equal(trace.values("classifier.logits"), expected.logits[0].numpy())
    else:
        with torch.inference_mode():
            hidden = checkpoint.model.encode(torch.tensor([trace.source.ids]))
        np.testing.assert_array_equal(hidden[0].numpy(), expected.last_hidden_state[0].numpy())


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_come_first_and_patches_have_the_colours_of_their_places(
    opened: dict[str, transformer.Checkpoint], kind: str
) -> None:
    checkpoint = opened[kind]
    tokens, image = transformer.trace(checkpoint, HOUSE).source, checkpoint.config.image
    assert tokens.displays[: len(image.before)] == IMAGE_GUESTS[kind][3]
    assert [token.special for token in tokens] == [True] * len(image.before) + [False] * image.n_patches
    assert tokens.displays[len(image.before)] == "r1c1" and tokens.displays[-1] == f"r{image.rows}c{image.columns}"
    cut = np.asarray(image.preprocessing.cut(read_image(HOUSE)))
    (height, width), last = image.patch, tokens[-1]
    corner = cut[(image.rows - 1) * height : image.rows * height, (image.columns - 1) * width : image.columns * width]
    cells = [tuple(int(cell[at : at + 2], 16) for at in (1, 3, 5)) for cell in last.pixels]
    np.testing.assert_allclose(np.mean(cells, axis=0), corner.mean(axis=(0, 1)), atol=1.5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_sums_of_the_residual_stream_hold(opened: dict[str, transformer.Checkpoint], kind: str) -> None:
    """Also where each channel of an update is scaled (LayerScale of DINOv2)."""
    trace = transformer.trace(opened[kind], HOUSE)
    for layer in range(2):
        name = f"encoder.layers.{layer}"
        start, middle, end = (trace.values(f"{name}.residual.{at}") for at in ("in", "after_self_attention", "out"))
        attended, fed = (trace.values(f"{name}.{part}.output") for part in ("self_attention", "feed_forward"))
        np.testing.assert_allclose(start + attended, middle, atol=2e-5)
        np.testing.assert_allclose(middle + fed, end, atol=2e-5)
    token, place, total = (trace.values(f"encoder.embedding.{part}") for part in ("token", "position", "sum"))
    np.testing.assert_allclose(token + place, total, atol=1e-6)
    position = trace.checkpoint.model.encoder.embedding.position_encoding(len(trace.source))
    np.testing.assert_array_equal(position[0].numpy(), place)


@pytest.mark.parametrize("kind", ["vit", "dinov2_with_registers"])
def test_removing_a_head_changes_the_run_alone(opened: dict[str, transformer.Checkpoint], kind: str) -> None:
    checkpoint, name = opened[kind], "encoder.layers.1.residual.out"
    before = transformer.trace(checkpoint, HOUSE).values(name)
    edit = transformer.ablate_head("encoder", layer=0, head=1)
    changed = transformer.trace(checkpoint, HOUSE, edits=[edit]).values(name)
    assert np.abs(changed - before).max() > 1e-3
    np.testing.assert_array_equal(transformer.trace(checkpoint, HOUSE).values(name), before)


def test_a_hidden_patch_has_no_pixels_and_patches_of_two_images_can_be_mixed(
    opened: dict[str, transformer.Checkpoint],
) -> None:
    checkpoint = opened["vit"]
    house, boat = (transformer.trace(checkpoint, text).source.ids for text in (HOUSE, BOAT))
    ids = torch.tensor([[*house[:5], MASK_ID, boat[6], *house[7:]]])
    found, of_house, of_boat = (
        checkpoint.model.images.pixels(each)[0] for each in (ids, torch.tensor([house]), torch.tensor([boat]))
    )
    assert not found[:, 8:16, 0:8].any(), "patch 5 is row 2, column 1"
    torch.testing.assert_close(found[:, 8:16, 8:16], of_boat[:, 8:16, 8:16], rtol=0, atol=0)
    torch.testing.assert_close(found[:, 16:], of_house[:, 16:], rtol=0, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_pixels_maps_and_outputs_are_theirs(opened: dict[str, transformer.Checkpoint], kind: str) -> None:
    found = compare_images(opened[kind])
    assert len(found) == 4 and all(comparison.agrees for comparison in found), found
    assert all(comparison.attention == 0.0 == comparison.logits for comparison in found)
    assert all(comparison.pixels <= 1e-6 for comparison in found)


def test_a_copy_of_a_model_reads_the_same_images(opened: dict[str, transformer.Checkpoint]) -> None:
    """Training takes its step on a copy."""
    ids = torch.tensor([transformer.trace(opened["vit"], BOAT).source.ids])
    with torch.inference_mode():
        assert torch.equal(copy.deepcopy(opened["vit"].model)(ids), opened["vit"].model(ids))


def test_a_sentence_or_an_image_that_is_not_here_is_refused(opened: dict[str, transformer.Checkpoint]) -> None:
    for text, said in (("A cat.", "reads images, not text"), (f"image:{'0' * 64}", "no longer here")):
        with pytest.raises(InputError, match=said):
            transformer.trace(opened["vit"], text)


def test_settings_that_the_file_leaves_out_are_those_of_its_class(folder: Path) -> None:
    """An old file names only its former class; without a file, the size is that of the config."""
    path = image_checkpoint("clip", folder / "old")
    old = {"feature_extractor_type": "CLIPFeatureExtractor", "size": 32, "crop_size": 32}
    for stored, shortest, size in ((old, 32, None), (None, 0, (32, 32))):
        file = path / "preprocessor_config.json"
        file.unlink() if stored is None else file.write_text(json.dumps(stored))
        image = transformer.load(path).config.image
        found = image.preprocessing
        assert (found.shortest, found.size, found.crop, found.resample) == (shortest, size, (32, 32), 3)
        assert found.mean == pytest.approx((0.48145466, 0.4578275, 0.40821073))
        assert image.assumed == (stored is None)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"do_pad": True}, "do_pad"),
        ({"size": {"longest_edge": 300}}, "size"),
        ({"size": {"height": 10**9, "width": 32}}, "size"),
        ({"resample": 17}, "resample"),
        ({"image_std": [0.5, 0.0, 0.5]}, "image_std"),
        ({"image_mean": ["a", 0.5, 0.5]}, "image_mean"),
        ({"image_mean": [10**400, 0.5, 0.5]}, "image_mean"),
        ({"rescale_factor": float("nan")}, "rescale_factor"),
    ],
)
def test_an_image_processor_that_does_something_else_is_refused(changed: dict[str, object], said: str) -> None:
    with pytest.raises(CheckpointError, match=said):
        preprocessing_of({**processor("vit").to_dict(), **changed})


def test_a_network_whose_tokens_are_not_patches_is_refused(tmp_path: Path) -> None:
    import transformers

    sizes = {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2]}
    transformers.SwinModel(transformers.SwinConfig(**sizes, window_size=4)).save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(processor("vit").to_dict(), default=str))
    with pytest.raises(CheckpointError, match="not the patches"):
        transformer.load(tmp_path)
