"""The cosines of CLIP and SigLIP and their shares, against their own code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from tests.transformer.guests.tiny_image_guests import image_checkpoint, network, processor
from transformer import CheckpointError
from transformer.attribution.image_text_cosine import ImageTextCosine, image_text_cosine
from transformer.files.text_tower import open_text_tower
from transformer.pictures.image_files import read_image

pytest.importorskip("transformers")
IMAGE, TEXT = "image:boat", "A dog and a boat."


@pytest.fixture(scope="module")
def towers(tmp_path_factory: pytest.TempPathFactory) -> tuple[transformer.Checkpoint, transformer.Checkpoint]:
    images = transformer.load(image_checkpoint("clip", tmp_path_factory.mktemp("clip")))
    return images, open_text_tower(images)


@pytest.fixture(scope="module")
def found(towers: tuple[transformer.Checkpoint, transformer.Checkpoint]) -> ImageTextCosine:
    return image_text_cosine(*towers, IMAGE, TEXT)


def test_the_cosine_is_that_of_clip(found: ImageTextCosine) -> None:
    whole = network("clip")
    pixels = torch.from_numpy(np.asarray(processor("clip")(read_image(IMAGE))["pixel_values"]))
    ids = torch.tensor([found.text.trace.source.ids])
    with torch.no_grad():
        output = whole(input_ids=ids, pixel_values=pixels, attention_mask=torch.ones_like(ids))
    assert found.cosine == pytest.approx(float(output.image_embeds @ output.text_embeds.T), abs=1e-5)


def test_the_shares_of_each_tower_add_up_to_the_cosine(found: ImageTextCosine) -> None:
    for tower in (found.image, found.text):
        assert tower.total == pytest.approx(found.cosine, abs=1e-5)
        assert tower.positions.shape == (2, len(tower.trace.source))
    assert found.text.trace.source[found.text.row].role == "end" and found.image.trace.source[0].display == "[CLS]"
    assert np.ptp(found.image.by_position) > 1e-3 and np.ptp(found.text.by_position) > 1e-3


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> ImageTextCosine:
    images = transformer.load(image_checkpoint("siglip", tmp_path_factory.mktemp("siglip")))
    return image_text_cosine(images, open_text_tower(images), IMAGE, TEXT)


def test_the_cosine_is_that_of_siglip_with_a_padded_text(pooled: ImageTextCosine) -> None:
    whole, tokens = network("siglip"), pooled.text.trace.source
    pixels = torch.from_numpy(np.asarray(processor("siglip")(read_image(IMAGE))["pixel_values"]))
    assert len(tokens) == 16 and 0 < pooled.text.n_pads < 16 and set(tokens.ids[-pooled.text.n_pads - 1 :]) == {3}
    with torch.no_grad():
        output = whole(input_ids=torch.tensor([tokens.ids]), pixel_values=pixels)
    assert pooled.cosine == pytest.approx(float(output.image_embeds @ output.text_embeds.T), abs=1e-5)


def test_the_shares_of_a_pooling_head_add_up_to_the_cosine(pooled: ImageTextCosine) -> None:
    for tower in (pooled.image, pooled.text):
        assert tower.total == pytest.approx(pooled.cosine, abs=1e-5)
    assert pooled.image.positions.shape == (1, 16) and pooled.text.positions.shape == (2, 16)
    assert pooled.image.row is None and pooled.text.row == 15
    assert np.ptp(pooled.image.by_position) > 1e-3 and pooled.image.start == 0.0


def test_a_share_is_what_the_cosine_loses_with_norm_and_length_kept(found: ImageTextCosine) -> None:
    """Recomputed by hand for one patch in one layer: its vector is taken out of the residual stream."""
    tower, layer, patch = found.image, 1, 6
    model, run = tower.trace.checkpoint.model, tower.trace
    prefix = f"encoder.layers.{layer}.self_attention"
    weights, values = (torch.tensor(run.values(f"{prefix}.{part}")) for part in ("weights", "value"))
    mixed = (weights[:, 0, patch, None] * values[:, patch]).flatten()
    taken = mixed @ model.get_submodule(f"{prefix}.output_projection").weight.T
    x = torch.tensor(run.values("encoder.layers.1.residual.out")[0])
    norm, projection = model.network.vision_model.post_layernorm, model.network.visual_projection
    with torch.no_grad():
        text_model = network("clip")
        ids = torch.tensor([found.text.trace.source.ids])
        other = text_model.get_text_features(input_ids=ids, attention_mask=torch.ones_like(ids))
        other = getattr(other, "pooler_output", other)[0]
        other = other / other.norm()
        sigma = torch.sqrt((x - x.mean()).square().mean() + norm.eps)
        whole, without = ((y - y.mean()) / sigma * norm.weight + norm.bias for y in (x, x - taken))
        length = projection(whole).norm()
        lost = (projection(whole) - projection(without)) @ other / length
    assert tower.positions[layer, patch] == pytest.approx(float(lost), abs=1e-6)


def test_a_checkpoint_of_one_tower_has_no_text_tower(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no text tower"):
        open_text_tower(transformer.load(image_checkpoint("vit", tmp_path)))
