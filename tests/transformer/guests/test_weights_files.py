"""Files of weights give Hugging Face's numbers: logits, maps, shards, precisions, adapters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import transformer
from tests.foreign_checkpoints import any_checkpoint, foreign_checkpoint, write_adapter
from tests.transformer.guests.hugging_face import CASES, VOCABULARY, build, saved
from tests.transformer.guests.their_numbers import equals_theirs, padded_texts
from transformer import CheckpointError
from transformer.fast.shortcut import fast_path
from transformer.guests.folder import read_json
from transformer.guests.opening import OpenedGuest, open_guest
from transformer.guests.tensors import all_finite
from transformer.runs.decoding_state import DecodingState

TOLERANCE = 2e-5
LENGTHS = (1, 2, 5, 17, 64)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory):
    """Return ``opened("bert")``, which gives our model and Hugging Face's, from the same files."""
    found: dict[str, tuple[OpenedGuest, Any]] = {}

    def get(case: str) -> tuple[OpenedGuest, Any]:
        if case not in found:
            folder = tmp_path_factory.mktemp("family")
            theirs = saved(case, folder)
            found[case] = (open_guest(folder, read_json(folder / "config.json")), theirs)
        return found[case]

    return get


@pytest.mark.sample("case", of=9)
@pytest.mark.parametrize("case", CASES)
def test_logits_and_every_map_are_theirs(opened, case: str) -> None:
    ours, theirs = opened(case)
    start = getattr(theirs.config, "decoder_start_token_id", None) or 0
    assert all(equals_theirs(ours.model, theirs, length, start=start, tolerance=TOLERANCE) for length in LENGTHS)


WRITERS = [case for case in CASES if not any(word in case for word in ("classes", "bert", "longrope"))]


@pytest.mark.sample("case", of=7)
@pytest.mark.parametrize("case", WRITERS)
def test_writing_with_a_cache_gives_the_same_logits(opened, case: str) -> None:
    """Generate step by step on the fast path, whose windows, caps and rotations need the current position."""
    ours, _ = opened(case)
    ids = padded_texts(ours.model.config, 17)[0][0]
    source = ids if ours.model.config.has_encoder else None
    target = torch.randint(3, VOCABULARY - 2, (2, 17), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        memory = () if source is None else (ours.model.encode(source), source)
        whole = ours.model.project(ours.model.decode(target, *memory))
        with fast_path():
            state = DecodingState(ours.model, source)
            written = torch.stack([state.feed(target[:, i : i + 1]) for i in range(17)], dim=1)
    # The weights are large, so the fused kernel's summation order matters; a wrong position gives differences of 1.
    torch.testing.assert_close(written, whole, atol=1e-3, rtol=0)


@pytest.mark.parametrize("case", ["llama, longrope", "gemma 3, yarn and longrope"])
def test_a_text_that_outgrows_its_factors_is_read_anew(opened, case: str) -> None:
    """Beyond 16 tokens, earlier tokens are also rotated differently: each step equals a fresh pass."""
    ours, _ = opened(case)
    ids = padded_texts(ours.model.config, 19)[0][0]
    with torch.no_grad():
        steps, parts = DecodingState(ours.model, None), DecodingState(ours.model, None)
        found = [steps.feed(ids[:, i : i + 1]) for i in range(19)]
        wanted = [ours.model.project(ours.model.decode(ids[:, : i + 1]))[:, -1] for i in range(19)]
        torch.testing.assert_close(torch.stack(found), torch.stack(wanted), atol=1e-3, rtol=0)
        ends = torch.cat([parts.feed_all(part) for part in ids.split(16, dim=1)], dim=1)
    torch.testing.assert_close(ends[:, :16], torch.stack(found[:16], dim=1), atol=1e-3, rtol=0)
    torch.testing.assert_close(ends[:, -1], found[-1], atol=1e-3, rtol=0)


@pytest.mark.parametrize("case", ["bert, classes", "bert, pre-training", "gpt2", "t5", "gemma 2"])
def test_what_is_not_read_is_named(opened, case: str) -> None:
    unread = {name.removeprefix("bert.").rsplit(".", 1)[0] for name in opened(case)[0].unread}
    assert unread == ({"pooler.dense", "cls.seq_relationship"} if case == "bert, pre-training" else set())


def reopened(folder: Path) -> OpenedGuest:
    return open_guest(folder, read_json(folder / "config.json"))


@pytest.mark.sample("case", "prefix", of=4)
@pytest.mark.parametrize("case", ["bert", "gpt2", "llama", "marian", "t5"])
@pytest.mark.parametrize("prefix", ["none", "doubled"])
def test_old_names_of_tensors_are_known(tmp_path: Path, case: str, prefix: str) -> None:
    """Without the model's prefix, or with a second one; LayerNorm's γ and β with their old names."""
    saved_model = build(case)
    saved_model.save_pretrained(tmp_path)
    before = reopened(tmp_path).model
    base = f"{saved_model.base_model_prefix}."
    file = tmp_path / "model.safetensors"
    renamed = {}
    for name, tensor in load_file(file).items():
        new = name.removeprefix(base) if prefix == "none" else f"{base}{name}" if name.startswith(base) else name
        if case == "bert":
            new = new.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        renamed[new] = tensor
    save_file(renamed, file)
    after = reopened(tmp_path).model
    for (name, one), (_, other) in zip(before.named_parameters(), after.named_parameters(), strict=True):
        assert torch.equal(one, other), name


def test_shards_are_read_by_their_index(tmp_path: Path) -> None:
    model = build("llama")
    model.save_pretrained(tmp_path / "whole")
    model.save_pretrained(tmp_path / "shards", max_shard_size="20KB")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 1
    whole, shards = (reopened(tmp_path / name).model.state_dict() for name in ("whole", "shards"))
    assert whole.keys() == shards.keys()
    assert all(torch.equal(whole[name], shards[name]) for name in whole)


def test_stored_sines_count_as_they_are_stored(tmp_path: Path) -> None:
    """Files in half precision contain rounded sines, which Hugging Face reads."""
    build("marian").save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    model = reopened(tmp_path).model
    sines = model.encoder.embedding.position_encoding(96)[0].half().float()
    tables = {f"model.{stack}.embed_positions.weight": sines.clone() for stack in ("encoder", "decoder")}
    save_file(load_file(file) | tables, file)
    stored, theirs = reopened(tmp_path), build("marian").from_pretrained(tmp_path).eval()
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        ours, expected = stored.model(ids, ids), theirs(input_ids=ids, decoder_input_ids=ids).logits
    assert (ours - expected).abs().max() < TOLERANCE
    assert not stored.unread and (ours - model(ids, ids)).abs().max() > TOLERANCE


def test_a_file_of_mixed_precision_opens(tmp_path: Path) -> None:
    """As saved by mixed-precision training: norms in float32, matrices in half precision."""
    build("qwen3").save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    halves = {name: tensor.bfloat16() if tensor.ndim == 2 else tensor for name, tensor in load_file(file).items()}
    save_file(halves, file)
    found = reopened(tmp_path).model.state_dict()
    assert {tensor.dtype for tensor in found.values()} == {torch.float32}
    save_file({name: tensor.float() for name, tensor in halves.items()}, file)
    for name, tensor in reopened(tmp_path).model.state_dict().items():
        torch.testing.assert_close(found[name], tensor, rtol=0, atol=0)


def test_numbers_whose_sum_is_too_large_for_a_float_are_finite_all_the_same() -> None:
    assert all_finite(torch.full((3,), 3e38))
    assert not all_finite(torch.tensor([torch.inf, -torch.inf]))


def test_a_model_too_large_for_the_memory_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build("gpt2").save_pretrained(tmp_path)
    monkeypatch.setattr("transformer.system.memory.free_memory", lambda: 1000)
    monkeypatch.setattr("transformer.guests.tensors.FolderTensors.read", lambda *_: pytest.fail("it was read"))
    with pytest.raises(CheckpointError, match="GB of memory"):
        reopened(tmp_path)


def test_a_tied_matrix_is_one_and_an_own_one_stays(opened) -> None:
    tied, own = opened("gpt2")[0], opened("gpt2, scaled by layer, untied")[0]
    for found, expected in ((tied, True), (own, False)):
        decoder = found.model.decoder
        assert (decoder.vocabulary_projection.weight is decoder.embedding.table.weight) is expected
        assert found.model.config.tie_embeddings is expected


# ---- LoRA adapters, merged into their base --------------------------------------------------------------------------


def same_weights(one: transformer.Checkpoint, other: transformer.Checkpoint) -> bool:
    ours, theirs = dict(one.model.named_parameters()), dict(other.model.named_parameters())
    return ours.keys() == theirs.keys() and all(torch.allclose(ours[name], theirs[name], atol=1e-6) for name in ours)


@pytest.mark.parametrize(
    ("case", "ending", "settings"),
    [("hf-llama", "q_proj", {}), ("hf-gpt2", "c_attn", {"fan_in_fan_out": True}), ("phi", "v_proj", {})],
)
def test_an_adapter_opens_as_the_merged_model(tmp_path: Path, case: str, ending: str, settings: dict) -> None:
    any_checkpoint(case, tmp_path)
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
