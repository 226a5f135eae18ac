"""Images: patches, their numbers, and the Vision Transformer compared with torch's layers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

import transformer
from charts.canvas.attention_maps import attention_grid, attention_map
from transformer.attribution.leave_one_out import leave_one_out
from transformer.config import PictureConfig
from transformer.pictures.digits import digit_rows
from transformer.pictures.patch_numbers import ids_of, levels_of, patches_of, pixels_of
from transformer.pictures.patch_tokenizer import PatchTokenizer
from transformer.scores.baselines import nearest_picture_accuracy
from transformer.training.objectives import PictureClassification

PICTURE = "0123456789abcdefg" + "0" * 40 + "g654321"
N_PATCHES = 16


def config(**values: object) -> PictureConfig:
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 20, "n_encoder_layers": 2, "activation": "gelu"}
    names = {"positions": "learned", "max_length": N_PATCHES + 1, "vocabulary_size": 4 + 17**4}
    return PictureConfig(**{**sizes, **names, "class_names": ("a", "b", "c"), **values})


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> transformer.Checkpoint:
    """Write and read random weights, including biases."""
    folder = tmp_path_factory.mktemp("pictures")
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = transformer.build_model(config())
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.2 * torch.randn_like(parameter)
    transformer.save(folder, model, PatchTokenizer(model.config), half=False)
    return transformer.load(folder)


def test_patches_are_those_of_unfold_and_numbers_give_them_back() -> None:
    pixels = torch.randint(17, (5, 8, 8), generator=torch.Generator().manual_seed(0))
    patches = patches_of(pixels, 2)
    unfolded = F.unfold(pixels[:, None].float(), kernel_size=2, stride=2).transpose(1, 2)
    assert torch.equal(patches.float(), unfolded)
    ids = ids_of(patches, 17)
    assert torch.equal(levels_of(ids, config()), patches)
    assert torch.equal(pixels_of(patches, config()), pixels)
    assert ids_of(torch.tensor([[0, 0, 0, 0], [16, 16, 16, 16], [0, 0, 0, 1]]), 17).tolist() == [4, 3 + 17**4, 5]


def test_a_picture_is_a_text_and_back(checkpoint: transformer.Checkpoint) -> None:
    tokenizer = checkpoint.tokenizer
    ids = tokenizer.encode(PICTURE)
    assert len(ids) == N_PATCHES
    assert tokenizer.decode([1, *ids]) == PICTURE
    assert tokenizer.encode("\n".join(PICTURE[row : row + 8] for row in range(0, 64, 8)).upper()) == ids
    sequence = tokenizer.sequence([1, *ids])
    assert sequence.labels[:6] == ("[CLS]", "r1c1", "r1c2", "r1c3", "r1c4", "r2c1")
    assert tokenizer.display(ids[0]) == "0189"  # rows 0123 4567 and 89ab cdef
    assert all(token.starts_word for token in sequence)
    assert sequence[0].pixels == () and sequence[1].pixels == (0.0, 1 / 16, 0.5, 9 / 16), "levels of 0 to 16"


def test_rows_and_columns_of_a_map_are_the_patches_that_they_name(checkpoint: transformer.Checkpoint) -> None:
    view = transformer.trace(checkpoint, PICTURE).attention("encoder", 0)
    for figure in (attention_map(view, head=0), attention_grid([view])):
        for side in ("row_pictures", "column_pictures"):
            first, *patches = figure.metadata[side]
            assert first is None and len(patches) == N_PATCHES, "the class token is no patch"
            assert patches[0] == pytest.approx([0, 1 / 16, 8 / 16, 9 / 16])


@pytest.mark.parametrize(
    ("text", "said"), [("012", "3 pixels"), (PICTURE + "0", "65 pixels"), ("h" + PICTURE[1:], "'h' is not a pixel")]
)
def test_what_is_no_picture_is_refused(checkpoint: transformer.Checkpoint, text: str, said: str) -> None:
    with pytest.raises(transformer.InputError, match=said):
        transformer.trace(checkpoint, text)


def test_a_patch_is_left_out_by_a_mask_in_its_place(checkpoint: transformer.Checkpoint) -> None:
    found = leave_one_out(checkpoint, PICTURE)
    assert [word.text for word in found.words][:5] == ["r1c1", "r1c2", "r1c3", "r1c4", "r2c1"]
    ids = [1, *checkpoint.tokenizer.encode(PICTURE)]
    ids[5] = checkpoint.special.mask
    with torch.no_grad():
        expected = checkpoint.model(torch.tensor([ids])).softmax(dim=-1)[0]
    assert torch.allclose(torch.tensor(found.without[4]), expected, atol=1e-6)


def test_the_table_of_all_patches_is_what_patches_get(checkpoint: transformer.Checkpoint) -> None:
    table = checkpoint.model.encoder.embedding.table
    ids = torch.tensor([[0, 1, 3, *checkpoint.tokenizer.encode(PICTURE)]])
    with torch.no_grad():
        assert table.weight.shape == (4 + 17**4, 16)
        assert torch.allclose(table.weight[ids], table(ids), atol=1e-6)


def test_a_checkpoint_whose_tokenizer_cuts_otherwise_is_refused(
    checkpoint: transformer.Checkpoint, tmp_path: Path
) -> None:
    transformer.save(tmp_path, checkpoint.model, checkpoint.tokenizer)
    file = tmp_path / "tokenizer.json"
    file.write_text(file.read_text().replace('"patch_size": 2', '"patch_size": 4'))
    with pytest.raises(transformer.CheckpointError, match="how images are cut"):
        transformer.load(tmp_path)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"patch_size": 3}, "cannot be cut"),
        ({"max_length": 16}, "max_length is 16"),
        ({"n_levels": 16}, "vocabulary_size is 83525"),
        ({"patch_size": 4, "max_length": 5, "vocabulary_size": 4 + 17**16}, "at most 1000000"),
        ({"class_names": ()}, "at least 2 classes"),
        ({"kind": "decoder-only", "n_encoder_layers": 0, "n_decoder_layers": 1, "class_names": ()}, "class_names"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(values: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        config(**values)


def test_training_moves_a_picture_by_a_pixel_at_most(checkpoint: transformer.Checkpoint) -> None:
    objective, tokenizer = PictureClassification(checkpoint.model), checkpoint.tokenizer
    dot = "0" * 27 + "g" + "0" * 36  # row 3, column 3
    examples = objective.encode(tokenizer, [(dot, 1)] * 64)
    objective.train()
    objective.HIDDEN = 0.0
    batch = objective.collate(examples, torch.Generator().manual_seed(0))
    objective.eval()
    places = {divmod(tokenizer.decode(row).index("g"), 8) for row in batch["ids"].tolist()}
    assert places == {(row, column) for row in (2, 3, 4) for column in (2, 3, 4)}
    assert batch["ids"][:, 0].tolist() == [1] * 64
    assert batch["class"].tolist() == [1] * 64
    still = objective.collate(examples, torch.Generator())
    assert {tokenizer.decode(row) for row in still["ids"].tolist()} == {dot}


def test_digits_are_cut_into_three_parts_that_never_change(checkpoint: transformer.Checkpoint) -> None:
    pytest.importorskip("sklearn")
    rows = digit_rows()
    assert {name: len(lines) for name, lines in rows.items()} == {"train": 1100, "dev": 250, "test": 447}
    assert len({line for lines in rows.values() for line in lines}) == 1797
    parts = {name: [tuple(line.split("\t")) for line in lines] for name, lines in rows.items()}
    assert nearest_picture_accuracy(checkpoint.tokenizer, parts["train"], parts["dev"]) > 0.97
