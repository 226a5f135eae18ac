"""A checkpoint directory is read completely or refused, with a sentence about what does not fit."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import transformer
from tests.transformer.tiny import random_model
from transformer import CheckpointError, Tokenizer
from transformer.files.checkpoints import _n_numbers, fingerprint, load_weights, save_weights

SENTENCE = "The cat sat on the mat."


@pytest.fixture
def folder(checkpoints_folder: Path, tmp_path: Path) -> Path:
    """A copy of the tiny translator that a test may break."""
    return Path(shutil.copytree(checkpoints_folder / "tiny-translator", tmp_path / "copy"))


def change_config(folder: Path, **values: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


def refused(folder: Path, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        transformer.load(folder)


@pytest.mark.parametrize("kind", ["encoder-decoder", "decoder-only", "encoder-only"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "relative"])
def test_a_saved_checkpoint_is_the_same_model(
    kind: str, tied: bool, positions: str, tiny_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    model = random_model(kind, vocabulary_size=400, tie_embeddings=tied, positions=positions)
    transformer.save(tmp_path / "a", model, tiny_tokenizer, card="# A card\n", half=False)
    loaded = transformer.load(tmp_path / "a")
    assert loaded.config == model.config
    assert (loaded.name, loaded.card) == ("a", "# A card\n")
    assert not loaded.model.training
    assert loaded.tokenizer.pieces == tiny_tokenizer.pieces
    own, other = dict(model.named_parameters()), dict(loaded.model.named_parameters())
    assert own.keys() == other.keys()
    for name, parameter in own.items():
        assert torch.equal(parameter, other[name]), name
    if tied and kind != "encoder-only":
        assert loaded.model.decoder.vocabulary_projection.weight is loaded.model.decoder.embedding.table.weight


def test_a_checkpoint_loaded_in_inference_mode_can_be_differentiated(folder: Path) -> None:
    """Whoever loads a shared checkpoint first, others take gradients of it."""
    with torch.inference_mode():
        checkpoint = transformer.load(folder)
    assert not any(parameter.is_inference() for parameter in checkpoint.model.parameters())


def test_half_precision_on_disk_is_single_precision_in_memory(tiny_tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = random_model(vocabulary_size=400)
    transformer.save(tmp_path, model, tiny_tokenizer)
    assert {tensor.dtype for tensor in load_file(tmp_path / "model.safetensors").values()} == {torch.float16}
    loaded = transformer.load(tmp_path).model
    for name, parameter in loaded.named_parameters():
        assert parameter.dtype == torch.float32
        assert torch.equal(parameter, model.get_parameter(name).half().float())


def test_a_tied_matrix_is_written_once(tmp_path: Path) -> None:
    save_weights(tmp_path / "model.safetensors", random_model())
    names = load_file(tmp_path / "model.safetensors").keys()
    assert not any("vocabulary_projection" in name for name in names)
    assert sum("table.weight" in name for name in names) == 1


def test_the_fingerprint_names_the_content(folder: Path, checkpoints_folder: Path) -> None:
    checkpoint = transformer.load(folder)
    assert checkpoint.fingerprint == fingerprint(checkpoints_folder / "tiny-translator")
    assert len(checkpoint.fingerprint) == 64 and checkpoint.fingerprint.startswith(checkpoint.short_fingerprint)
    for change in (
        lambda: change_weights(folder, lambda t: t["decoder.final_norm.bias"].add_(1)),
        lambda: change_config(folder, dropout=0.2),
    ):
        before = fingerprint(folder)
        change()
        assert fingerprint(folder) != before


def test_saving_over_a_checkpoint_replaces_it(folder: Path, tiny_tokenizer: Tokenizer) -> None:
    transformer.save(folder, random_model("decoder-only", vocabulary_size=400), tiny_tokenizer)
    assert transformer.load(folder).config.kind == "decoder-only"
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md", "config.json", "model.safetensors", "tokenizer.json",
    ]  # fmt: skip


def test_a_checkpoint_without_a_card_loads(folder: Path) -> None:
    (folder / "README.md").unlink()
    assert transformer.load(folder).card == ""
    (folder / "README.md").write_bytes(b"caf\xe9")
    assert transformer.load(folder).card.startswith("caf")


# ---- what is refused ------------------------------------------------------------------------------------------------


def test_the_current_folder_has_its_own_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert transformer.load(".").name == "copy"
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    assert transformer.load("..").name == "copy"


def test_a_path_that_is_no_directory(folder: Path) -> None:
    refused(folder / "nothing", "nothing is not a directory; a checkpoint is a directory with config.json")
    refused(folder / "config.json", "config.json is not a directory")


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file(file: str, folder: Path) -> None:
    (folder / file).unlink()
    refused(folder, f"lacks {file}; a checkpoint needs")


@pytest.mark.parametrize("name", ["model.pt", "pytorch_model.bin", "model.pth", "model.pkl", "last.ckpt"])
def test_a_pickle_is_refused_with_how_to_convert_it(name: str, folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / name)
    refused(
        folder, rf"holds {name}, a pickle, which may run any code.*safetensors.torch.save_file\(torch.load\('{name}'"
    )


def test_a_pickle_under_the_name_of_safetensors_is_not_opened(folder: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple:
            return (Path.touch, (folder / "exploded",))

    torch.save({"weight": Bomb()}, folder / "model.safetensors")
    refused(folder, "model.safetensors is not a complete safetensors file")
    assert not (folder / "exploded").exists()


@pytest.mark.parametrize("kept", [0.0, 0.001, 0.5, 0.999])
def test_truncated_weights(kept: float, folder: Path) -> None:
    raw = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(raw[: int(len(raw) * kept)])
    refused(folder, "model.safetensors is not a complete safetensors file")


@pytest.mark.parametrize("content", [b"", b"\xff" * 64, b"{}", b"\x00" * 8])
def test_weights_that_are_something_else(content: bytes, folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(content)
    refused(folder, "model.safetensors")


def test_truncated_config_and_tokenizer(folder: Path) -> None:
    for file in ("tokenizer.json", "config.json"):
        raw = (folder / file).read_text()
        (folder / file).write_text(raw[: len(raw) // 2])
        refused(folder, file)


def test_a_config_that_is_wrong_is_named_once(folder: Path) -> None:
    change_config(folder, n_heads=5)
    refused(folder, "config.json: d_model is 32, which is not divisible by 5 heads")
    (folder / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match="config.json is not valid JSON") as caught:
        transformer.load(folder)
    assert str(caught.value).count("config.json") == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"d_ff": 50}, r"feed_forward.input_projection.weight is \(48, 32\) in the file but \(50, 32\) by the config"),
        ({"d_model": 64}, r"is \(400, 32\) in the file but \(400, 64\) by the config"),
        ({"n_encoder_layers": 3}, r"it lacks encoder.layers.2.self_attention_norm.weight \(32,\)"),
        ({"n_decoder_layers": 200}, r"it lacks decoder.layers.2.self_attention_norm.weight .*and \d+ more"),
        ({"n_decoder_layers": 1}, r"it has an unknown decoder.layers.1.*and \d+ more"),
        ({"positions": "learned"}, r"it lacks encoder.embedding.position_encoding.table \(96, 32\)"),
        ({"tie_embeddings": True}, "it has an unknown decoder.embedding.table.weight"),
        ({"norm": "post"}, "it has an unknown encoder.final_norm"),
        ({"d_ff": 10**15}, r"it holds \d+ numbers but the config asks for 256000000000\d{6}"),
        ({"d_model": 10**15}, r"it holds \d+ numbers but the config asks for 24000000000\d{21}"),
    ],
)
def test_a_config_that_lies_about_the_shapes(change: dict, message: str, folder: Path) -> None:
    change_config(folder, **change)
    refused(folder, "model.safetensors does not fit its config.json: .*" + message)


def test_a_config_whose_claims_no_matrix_bears_out_allocates_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wide model of which only the table and the last feed-forward layer exist: 40 GB if it were built."""
    width = 32_768
    change_config(folder, d_model=width, d_ff=1, n_encoder_layers=1, n_decoder_layers=1, tie_embeddings=True)
    few = {
        "encoder.embedding.table.weight": torch.zeros(400, width, dtype=torch.float16),
        "encoder.layers.0.feed_forward.input_projection.weight": torch.zeros(1, width, dtype=torch.float16),
        "decoder.layers.0.feed_forward.input_projection.weight": torch.zeros(1, width, dtype=torch.float16),
    }
    save_file(few, folder / "model.safetensors")
    monkeypatch.setattr("transformer.files.checkpoints.build_model", lambda config: pytest.fail("the model was built"))
    refused(folder, r"it holds \d+ numbers but the config asks for 12\d{9}$")


@pytest.mark.parametrize("kind", ["encoder-decoder", "decoder-only", "encoder-only"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "relative"])
def test_what_a_config_asks_for_is_about_what_its_model_holds(kind: str, tied: bool, positions: str) -> None:
    """The other differences: tied or sinusoidal tables on one side only, and an untied projection."""
    model = random_model(kind, vocabulary_size=400, tie_embeddings=tied, positions=positions)
    held = sum(parameter.numel() for parameter in model.parameters() if parameter.dim() > 1)
    table, encodings = 400 * model.config.d_model, 2 * model.config.max_length * model.config.d_model
    assert held - table <= _n_numbers(model.config) <= held + table + encodings


def test_a_vocabulary_that_does_not_fit_the_tokenizer_is_refused_with_both_numbers(folder: Path) -> None:
    change_config(folder, vocabulary_size=401)
    refused(folder, "the tokenizer has 400 entries but config.json says vocabulary_size 401")


def test_another_padding_id_is_refused_with_both_numbers(folder: Path) -> None:
    change_config(folder, pad_id=2)
    refused(folder, "config.json says pad_id 2 but the tokenizer pads with 0")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_not_finite(value: float, folder: Path) -> None:
    change_weights(folder, lambda tensors: tensors["decoder.final_norm.bias"].__setitem__(3, value))
    refused(folder, r"not finite \(NaN or infinite\) in decoder.final_norm.bias")


def test_weights_that_do_not_fit_into_half_precision_are_not_written(tiny_tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = random_model.__wrapped__(vocabulary_size=400)
    with torch.no_grad():
        model.decoder.final_norm.bias[0] = 1e5
    with pytest.raises(ValueError, match=r"decoder.final_norm.bias.*half=False"):
        transformer.save(tmp_path / "a", model, tiny_tokenizer)
    assert not (tmp_path / "a" / "model.safetensors").exists()
    transformer.save(tmp_path / "a", model, tiny_tokenizer, half=False)
    assert transformer.load(tmp_path / "a").model.decoder.final_norm.bias[0] == 1e5


def test_weights_alone(folder: Path) -> None:
    """Snapshots hold weights only; the config comes from the checkpoint beside them."""
    checkpoint = transformer.load(folder)
    save_weights(folder / "snapshots" / "step-000001.safetensors", checkpoint.model, half=False)
    snapshot = load_weights(checkpoint.config, folder / "snapshots" / "step-000001.safetensors")
    for name, parameter in checkpoint.model.named_parameters():
        assert torch.equal(parameter, snapshot.get_parameter(name))


@pytest.mark.slow
def test_loading_imports_no_compiler(folder: Path) -> None:
    """torch's compiler takes a second and hundreds of modules, and nothing here uses it."""
    code = "import sys, transformer; transformer.load(sys.argv[1]); print('torch._dynamo' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu")])
def test_the_device_may_be_named(device: str | torch.device, folder: Path) -> None:
    assert transformer.load(folder, device=device).model.device.type == "cpu"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_model_on_a_gpu_traces_and_decodes_like_one_on_the_cpu(checkpoints_folder: Path) -> None:
    for name in ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"):
        path = checkpoints_folder / name
        here, there = transformer.load(path), transformer.load(path, device="cuda")
        target = None if "translator" not in name and "gpt" not in name else "Le chat."
        one, other = (transformer.trace(checkpoint, SENTENCE, target) for checkpoint in (here, there))
        for activation in one.names():
            torch.testing.assert_close(
                torch.tensor(other.values(activation)), torch.tensor(one.values(activation)), rtol=0, atol=1e-3
            )
        if here.config.has_decoder:
            edit = transformer.ablate_head("decoder", layer=0, head=0)
            for strategy in (transformer.Greedy(5), transformer.Sample(seed=1), transformer.Beam(3)):
                for edits in ((), (edit,)):
                    assert transformer.decode(there, SENTENCE, strategy, edits=edits).tokens
