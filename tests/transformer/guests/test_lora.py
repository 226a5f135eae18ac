"""LoRA adapters, merged into their base: the weights, what is refused, the fingerprint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import transformer
from tests.foreign_checkpoints import foreign_checkpoint
from tests.transformer.guests.tiny_guests import guest_checkpoint
from transformer.errors import CheckpointError

RANK, ALPHA = 2, 8


def write_adapter(folder: Path, base: Path, ending: str, **settings: object) -> Path:
    """Write an adapter of every matrix whose name ends with ``ending``, and the merged base beside it."""
    weights = load_file(base / "model.safetensors")
    generator = torch.Generator().manual_seed(0)
    stored, merged = {}, dict(weights)
    for name in sorted(name for name in weights if name.endswith(f"{ending}.weight")):
        rows, columns = weights[name].shape[:: -1 if settings.get("fan_in_fan_out") else 1]
        down, up = (torch.randn(*shape, generator=generator) for shape in ((RANK, columns), (rows, RANK)))
        module = f"base_model.model.{name.removesuffix('.weight')}"
        stored |= {f"{module}.lora_A.weight": down, f"{module}.lora_B.weight": up}
        change = ALPHA / RANK * up @ down
        merged[name] = weights[name] + (change.T if settings.get("fan_in_fan_out") else change)
    assert stored
    folder.mkdir()
    save_file(stored, folder / "adapter_model.safetensors")
    fields = {"peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA, "base_model_name_or_path": str(base), "bias": "none"}
    (folder / "adapter_config.json").write_text(json.dumps(fields | settings), encoding="utf-8")
    expected = folder.parent / "merged"
    expected.mkdir()
    for file in base.iterdir():
        (expected / file.name).write_bytes(file.read_bytes())
    save_file({name: tensor.contiguous() for name, tensor in merged.items()}, expected / "model.safetensors")
    return expected


def same_weights(one: transformer.Checkpoint, other: transformer.Checkpoint) -> bool:
    ours, theirs = dict(one.model.named_parameters()), dict(other.model.named_parameters())
    return ours.keys() == theirs.keys() and all(torch.allclose(ours[name], theirs[name], atol=1e-6) for name in ours)


@pytest.mark.parametrize(
    ("case", "ending", "settings"),
    [("hf-llama", "q_proj", {}), ("hf-gpt2", "c_attn", {"fan_in_fan_out": True}), ("phi", "v_proj", {})],
)
def test_an_adapter_opens_as_the_merged_model(tmp_path: Path, case: str, ending: str, settings: dict) -> None:
    if case == "phi":
        guest_checkpoint(case, tmp_path)
    else:
        foreign_checkpoint(case, tmp_path)
    expected = write_adapter(tmp_path / "adapter", tmp_path / case, ending, **settings)
    found, base = transformer.load(tmp_path / "adapter"), transformer.load(tmp_path / case)
    assert same_weights(found, transformer.load(expected)) and not same_weights(found, base)
    assert found.name == "adapter" and found.fingerprint != base.fingerprint
    sentence = "The cat sat."
    logits = [transformer.trace(each, sentence)["decoder.logits"].values[2] for each in (found, base)]
    assert abs(logits[0] - logits[1]).max() > 1e-4


def test_a_base_whose_tensors_lack_the_prefix_of_the_model_is_changed_too(tmp_path: Path) -> None:
    """As in the GPT-2 of the hub: the adapter says transformer.h.0, the file h.0."""
    base = foreign_checkpoint("hf-gpt2", tmp_path)
    expected = transformer.load(write_adapter(tmp_path / "adapter", base, "c_attn", fan_in_fan_out=True))
    file = base / "model.safetensors"
    save_file({name.removeprefix("transformer."): tensor for name, tensor in load_file(file).items()}, file)
    assert same_weights(transformer.load(tmp_path / "adapter"), expected)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"peft_type": "IA3"}, "peft_type 'IA3'; only plain LoRA"),
        ({"use_dora": True}, "use_dora True"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"r": 3}, "do not fit rank 3"),
        ({"r": 0}, "r 0 and lora_alpha 8"),
        ({"base_model_name_or_path": None}, "names no base"),
        ({"base_model_name_or_path": "no/where"}, "no/where"),
    ],
)
def test_what_is_not_plain_lora_is_refused(tmp_path: Path, settings: dict, problem: str) -> None:
    foreign_checkpoint("hf-llama", tmp_path)
    write_adapter(tmp_path / "adapter", tmp_path / "hf-llama", "q_proj")
    file = tmp_path / "adapter" / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))
    with pytest.raises(CheckpointError, match=problem):
        transformer.load(tmp_path / "adapter")


def test_an_adapter_of_another_model_is_refused(tmp_path: Path) -> None:
    for name in ("hf-llama", "hf-gpt2"):
        foreign_checkpoint(name, tmp_path)
    write_adapter(tmp_path / "adapter", tmp_path / "hf-llama", "q_proj")
    file = tmp_path / "adapter" / "adapter_config.json"
    other = {"base_model_name_or_path": str(tmp_path / "hf-gpt2")}
    file.write_text(json.dumps(json.loads(file.read_text()) | other))
    with pytest.raises(CheckpointError, match="the adapter changes .*q_proj.weight"):
        transformer.load(tmp_path / "adapter")


@pytest.mark.parametrize("kind", ["hf-llama", "phi"])
@pytest.mark.parametrize("width", [20_000, 400_000])
def test_what_an_adapter_adds_is_compared_with_the_base_before_it_is_computed(
    kind: str, width: int, tmp_path: Path
) -> None:
    """Two factors of 20,000 numbers, 160 kB, have a product of 1.6 GB; of 400,000, of 640 GB."""
    (guest_checkpoint if kind == "phi" else foreign_checkpoint)(kind, tmp_path)
    write_adapter(tmp_path / "adapter", tmp_path / kind, "q_proj", r=1)
    file = tmp_path / "adapter" / "adapter_model.safetensors"
    parts = {name: (1, width) if name.endswith("lora_A.weight") else (width, 1) for name in load_file(file)}
    save_file({name: torch.ones(shape) for name, shape in parts.items()}, file)
    with pytest.raises(CheckpointError, match=rf"q_proj.weight by \({width}, {width}\), but the base has"):
        transformer.load(tmp_path / "adapter")


@pytest.mark.parametrize("settings", [{"r": 10**400}, {"r": 10**400, "use_rslora": True}, {"lora_alpha": float("nan")}])
def test_numbers_that_cannot_be_computed_with_are_refused(settings: dict, tmp_path: Path) -> None:
    foreign_checkpoint("hf-llama", tmp_path)
    write_adapter(tmp_path / "adapter", tmp_path / "hf-llama", "q_proj", **settings)
    with pytest.raises(CheckpointError, match="rank|lora_alpha nan"):
        transformer.load(tmp_path / "adapter")
