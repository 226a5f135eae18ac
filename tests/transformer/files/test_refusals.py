"""A refusal names the file that it is about once, and says what a person can do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.foreign_checkpoints import foreign_checkpoint
from tests.transformer.guests.tiny_guests import guest_checkpoint
from tests.transformer.text.foreign_folders import byte_level, change_fields
from transformer import CheckpointError, load, read_trace
from transformer.disk.tensor_files import TensorFile
from transformer.errors import MessageError
from transformer.guests import bounded_build
from transformer.heads.prompt_batch import read_lines

MODELS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a type that is not known": ("config.json", lambda file: change_fields(file, model_type="x")),
    "no size": ("config.json", lambda file: change_fields(file, n_embd=-1)),
    "no such class": ("config.json", lambda file: change_fields(file, architectures=["Nothing"])),
    "a layer too few": ("config.json", lambda file: change_fields(file, n_layer=1)),
    "no JSON": ("config.json", lambda file: file.write_text("[")),
    "a folder as tokenizer": ("tokenizer.json", lambda file: (file.unlink(), file.mkdir())),
}


@pytest.mark.parametrize("case", MODELS)
def test_a_refused_model_names_its_file_once(case: str, tmp_path: Path) -> None:
    folder, (name, change) = foreign_checkpoint("hf-gpt2", tmp_path), MODELS[case]
    change(folder / name)
    with pytest.raises(CheckpointError) as found:
        load(folder)
    assert str(found.value).count(name) == 1, found.value


def test_a_network_of_too_many_modules_names_its_config_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_build, "MOST_MODULES", 3)
    with pytest.raises(CheckpointError) as found:
        load(foreign_checkpoint("hf-gpt2", tmp_path))
    assert str(found.value).count("config.json") == 1, found.value


@pytest.mark.parametrize("read", [read_trace, read_lines, TensorFile])
@pytest.mark.parametrize("make", [Path.mkdir, lambda file: file.write_bytes(b"\xff")])
def test_another_refused_file_is_named_once(
    read: Callable[[Path], object], make: Callable[[Path], object], tmp_path: Path
) -> None:
    make(file := tmp_path / "given.txt")
    with pytest.raises(MessageError) as found:
        read(file)
    assert str(found.value).count("given.txt") == 1, found.value


def test_a_folder_without_a_tokenizer_says_which_files_it_lacks(tmp_path: Path) -> None:
    folder = foreign_checkpoint("hf-llama", tmp_path)
    for file in folder.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(CheckpointError, match=r"lacks its tokenizer: tokenizer\.json"):
        load(folder)


def test_a_problem_of_several_lines_is_told_whole(tmp_path: Path) -> None:
    """Beside ``tokenizer_config.json`` alone, ``transformers`` lists what it looked for."""
    folder = foreign_checkpoint("hf-llama", tmp_path)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match=r"one of:? .+\(3\)"):
        load(folder)


def test_a_config_for_each_stack_is_named_as_the_problem(tmp_path: Path) -> None:
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "head_dim": 8}
    sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": byte_level().get_vocab_size()}
    made = "T5GemmaForConditionalGeneration", {"encoder": sizes, "decoder": sizes}
    with pytest.raises(CheckpointError, match="one config for its encoder and another for its decoder"):
        load(guest_checkpoint("t5gemma", tmp_path, made))
