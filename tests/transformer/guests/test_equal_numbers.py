"""Every family compared with Hugging Face's code: logits and maps, with and without padding and cache."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.transformer.guests.hugging_face import CASES, VOCABULARY, build, saved
from transformer import CheckpointError
from transformer.fast.shortcut import fast_path
from transformer.guests.folder import read_json
from transformer.guests.opening import OpenedGuest, open_guest
from transformer.guests.tensors import all_finite
from transformer.probes import record
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


def texts(ours: OpenedGuest, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two texts, the second padded if the encoder allows it, and a mask of the real positions."""
    ids = torch.randint(3, VOCABULARY - 2, (2, length), generator=torch.Generator().manual_seed(length))
    real = torch.ones_like(ids, dtype=torch.bool)
    if ours.model.config.has_encoder and length > 4:
        ids[1, -3:], real[1, -3:] = ours.model.config.pad_id, False
    return ids, real


def both(
    ours: OpenedGuest, theirs: Any, length: int
) -> tuple[dict[str, torch.Tensor], Any, torch.Tensor, torch.Tensor]:
    """Return our recording, Hugging Face's output, the mask of real source positions, and our logits."""
    ids, real = texts(ours, length)
    asked: dict[str, torch.Tensor] = {"input_ids": ids, "attention_mask": real.long()}
    inputs = [ids]
    if ours.model.config.kind == "encoder-decoder":
        target = torch.randint(3, VOCABULARY - 2, (2, max(1, length - 1)), generator=torch.Generator().manual_seed(2))
        target[:, 0] = getattr(theirs.config, "decoder_start_token_id", None) or 0
        asked["decoder_input_ids"] = target
        inputs.append(target)
    with torch.no_grad(), record() as recording:
        logits = ours.model(*inputs)
        expected = theirs(**asked, output_attentions=True)
    return recording.tensors, expected, real, logits


def attentions(ours: OpenedGuest, expected: Any) -> list[tuple[str, torch.Tensor]]:
    if ours.model.config.kind != "encoder-decoder":
        stack = "encoder" if ours.model.config.has_encoder else "decoder"
        return [(f"{stack}.layers.{i}.self_attention.weights", w) for i, w in enumerate(expected.attentions)]
    named = {
        "encoder.layers.{}.self_attention.weights": expected.encoder_attentions,
        "decoder.layers.{}.self_attention.weights": expected.decoder_attentions,
        "decoder.layers.{}.cross_attention.weights": expected.cross_attentions,
    }
    return [(name.format(i), weights) for name, layers in named.items() for i, weights in enumerate(layers)]


@pytest.mark.parametrize("case", CASES)
def test_logits_and_every_map_are_theirs(opened, case: str) -> None:
    ours, theirs = opened(case)
    for length in LENGTHS:
        recorded, expected, real, logits = both(ours, theirs, length)
        wanted = expected.logits if "logits" in expected else expected.prediction_logits
        difference = (logits - wanted).abs()
        if ours.model.config.kind == "encoder-only" and not ours.model.config.n_classes:
            difference = difference[real]
        assert difference.max() < TOLERANCE, (length, difference.max())
        maps = attentions(ours, expected)
        assert maps
        for name, weights in maps:
            difference = (recorded[name] - weights).abs()
            if name.startswith("encoder"):  # the attention of padding is meaningless
                difference = difference.transpose(1, 2)[real]
            assert difference.max() < TOLERANCE, (name, length, difference.max())


WRITERS = [case for case in CASES if "classes" not in case and "bert" not in case]


@pytest.mark.parametrize("case", [case for case in WRITERS if "longrope" not in case])
def test_writing_with_a_cache_gives_the_same_logits(opened, case: str) -> None:
    """Generate step by step on the fast path, whose windows, caps and rotations need the current position."""
    ours, _ = opened(case)
    ids, _ = texts(ours, 17)
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
    ids, _ = texts(ours, 19)
    with torch.no_grad():
        steps, parts = DecodingState(ours.model, None), DecodingState(ours.model, None)
        found = [steps.feed(ids[:, i : i + 1]) for i in range(19)]
        wanted = [ours.model.project(ours.model.decode(ids[:, : i + 1]))[:, -1] for i in range(19)]
        torch.testing.assert_close(torch.stack(found), torch.stack(wanted), atol=1e-3, rtol=0)
        ends = torch.cat([parts.feed_all(part) for part in ids.split(16, dim=1)], dim=1)
    torch.testing.assert_close(ends[:, :16], torch.stack(found[:16], dim=1), atol=1e-3, rtol=0)
    torch.testing.assert_close(ends[:, -1], found[-1], atol=1e-3, rtol=0)


@pytest.mark.parametrize("case", ["bert", "gpt2", "t5", "gemma 2"])
def test_no_tensor_is_left_unread_or_read_for_nothing(opened, case: str) -> None:
    ours, _ = opened(case)
    assert not ours.unread


def test_what_was_not_read_is_named(opened) -> None:
    ours, _ = opened("bert, classes")
    assert not ours.unread
    ours, _ = opened("bert, pre-training")
    assert {name.removeprefix("bert.").rsplit(".", 1)[0] for name in ours.unread} == {
        "pooler.dense",
        "cls.seq_relationship",
    }


def change(folder: Path, **changes: object) -> dict:
    """Return ``config.json`` with other values; ``...`` removes a field."""
    fields = json.loads((folder / "config.json").read_text()) | changes
    fields = {name: value for name, value in fields.items() if value is not ...}
    (folder / "config.json").write_text(json.dumps(fields))
    return fields


def reopened(folder: Path) -> OpenedGuest:
    return open_guest(folder, read_json(folder / "config.json"))


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


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_becomes_float32(tmp_path: Path, dtype: torch.dtype) -> None:
    build("qwen3").to(dtype).save_pretrained(tmp_path)
    assert {parameter.dtype for parameter in reopened(tmp_path).model.parameters()} == {torch.float32}


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


def refused(folder: Path, *words: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        reopened(folder)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("case", "changes", "words"),
    [
        ("gpt2", {"model_type": "nobody"}, ["model_type 'nobody'", "expected"]),
        ("gpt2", {"model_type": 3}, ["model_type 3", "expected"]),
        ("gpt2", {"n_embd": 39}, ["36", "39"]),
        ("gpt2", {"n_embd": "wide"}, ["n_embd 'wide'", "expected an integer from 1"]),
        ("gpt2", {"n_layer": 4}, ["lacks the weights", "h.3"]),
        ("gpt2", {"n_layer": 2}, ["h.2", "a layer that config.json does not have"]),
        ("gpt2", {"n_head": 5}, ["36 channels", "5 heads"]),
        ("gpt2", {"architectures": ["GPT2ForSequenceClassification"]}, ["lacks the weights score"]),
        ("llama", {"rope_parameters": {"rope_type": "su", "factor": 2.0, "rope_theta": 1e4}}, ["'su'", "longrope"]),
        (
            "llama",
            {"rope_parameters": {"rope_type": "yarn", "factor": 2.0, "rope_theta": 1.0}},
            ["float division by zero"],
        ),
        ("llama", {"rope_parameters": {"rope_type": "longrope", "short_factor": [-1] * 5}}, ["short_factor -1"]),
        ("llama", {"rope_parameters": {"rope_type": "linear", "factor": 1e-300}}, ["finite"]),
        ("llama", {"rope_theta": 1e-300, "rope_parameters": ...}, ["finite"]),
        ("llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4}}, ["factor"]),
        ("llama", {"num_key_value_heads": 4}, ["6 heads", "4 heads of keys"]),
        ("llama", {"head_dim": 9}, ["9"]),
        ("llama", {"hidden_size": ...}, ["4096"]),
        ("llama", {"num_hidden_layers": 10**9}, ["num_hidden_layers", "1000000000"]),
        ("llama", {"rms_norm_eps": float("nan")}, ["rms_norm_eps nan", "expected a number above 0"]),
        ("bert", {"architectures": ["BertForTokenClassification"]}, ["lacks the weights classifier"]),
        ("bert", {"vocab_size": 98}, ["97", "98"]),
        ("bert, classes", {"id2label": {"0": "score"}, "num_labels": 1}, ["classifier.weight", "(1, 36)"]),
        ("mistral", {"sliding_window": -3}, ["cannot be shown"]),
        *(
            ("llama", {"quantization_config": {"quant_method": method}}, [f"quantised ({method})", "GGUF"])
            for method in ("awq", "gptq", "bitsandbytes")
        ),
    ],
)
def test_a_config_that_lies_is_refused_in_a_sentence(
    tmp_path: Path, case: str, changes: dict[str, object], words: list[str]
) -> None:
    build(case).save_pretrained(tmp_path)
    change(tmp_path, **changes)
    refused(tmp_path, *words)


@pytest.mark.parametrize("case", ["bert, classes"])
def test_a_classifier_without_its_head_is_refused(tmp_path: Path, case: str) -> None:
    model = build(case)
    model.base_model.save_pretrained(tmp_path)
    change(tmp_path, architectures=[type(model).__name__])
    refused(tmp_path, "lacks the weights")


def test_broken_weights_are_refused(tmp_path: Path) -> None:
    model = build("gpt2")
    with torch.no_grad():
        model.transformer.h[1].mlp.c_fc.bias[3] = torch.nan
    model.save_pretrained(tmp_path)
    refused(tmp_path, "not finite", "h.1.mlp.c_fc.bias")
    with torch.no_grad():
        model.transformer.h[1].mlp.c_fc.bias[3:5] = torch.tensor([torch.inf, -torch.inf])
    model.save_pretrained(tmp_path)
    refused(tmp_path, "not finite", "h.1.mlp.c_fc.bias")
    file = tmp_path / "model.safetensors"
    tensors = load_file(file)
    tensors["transformer.wte.weight"] = torch.zeros(VOCABULARY, 36, dtype=torch.int64)
    save_file(tensors, file)
    refused(tmp_path, "wte.weight", "I64")
    file.write_bytes(file.read_bytes()[:500])
    refused(tmp_path, "not a complete safetensors file")


def test_numbers_whose_sum_is_too_large_for_a_float_are_finite_all_the_same() -> None:
    assert all_finite(torch.full((3,), 3e38))
    assert not all_finite(torch.tensor([torch.inf, -torch.inf]))


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ({"weight_map": {"a": "../secret.safetensors"}}, ["../secret", "elsewhere"]),
        ({"weight_map": {"a": "absent.safetensors"}}, ["absent.safetensors", "missing"]),
        ({"weight_map": {"a": 3}}, ["3"]),
        ({"weights": {}}, ["not an index"]),
        ([], ["not an index"]),
    ],
)
def test_an_index_may_only_name_what_lies_beside_it(tmp_path: Path, index: object, words: list[str]) -> None:
    build("gpt2").save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(tmp_path, *words)


def test_a_model_too_large_for_the_memory_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build("gpt2").save_pretrained(tmp_path)
    monkeypatch.setattr("transformer.system.memory.free_memory", lambda: 1000)
    monkeypatch.setattr("transformer.guests.tensors.FolderTensors.read", lambda *_: pytest.fail("it was read"))
    refused(tmp_path, "GB of memory")


def test_a_tied_matrix_is_one_and_an_own_one_stays(opened) -> None:
    tied, own = opened("gpt2")[0], opened("gpt2, scaled by layer, untied")[0]
    for found, expected in ((tied, True), (own, False)):
        decoder = found.model.decoder
        assert (decoder.vocabulary_projection.weight is decoder.embedding.table.weight) is expected
        assert found.model.config.tie_embeddings is expected
