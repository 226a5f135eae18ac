"""Whole folders of Hugging Face's layout: loaded, traced, written with, verified, on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.foreign_checkpoints import FOREIGN, foreign_checkpoint
from tests.transformer.families.hugging_face import CASES
from transformer import Checkpoint, CheckpointError, Greedy, decode, load, read_trace, save_trace, trace
from transformer.__main__ import main
from transformer.families.verify import verify

transformers = pytest.importorskip("transformers")

SENTENCE, TARGET = "The cat sat on the mat.", "Le chat est fatigué."


@pytest.fixture(scope="session")
def foreign(tmp_path_factory: pytest.TempPathFactory):
    """``foreign("hf-t5")``: one of ``FOREIGN``, loaded."""
    folder, found = tmp_path_factory.mktemp("foreign"), {}

    def get(name: str) -> Checkpoint:
        if name not in found:
            found[name] = load(foreign_checkpoint(name, folder))
        return found[name]

    return get


def theirs(checkpoint: Checkpoint) -> Any:
    architecture = json.loads((checkpoint.path / "config.json").read_text())["architectures"][0]
    assert architecture in {case[0] for case in CASES.values()}
    return getattr(transformers, architecture).from_pretrained(checkpoint.path, attn_implementation="eager").eval()


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_read_and_what_comes_out_are_theirs(foreign, name: str) -> None:
    """Ids as their tokenizer gives them, logits and maps as their model does, for a sentence and a given answer."""
    checkpoint, model = foreign(name), theirs(foreign(name))
    kind = checkpoint.config.kind
    sentence = SENTENCE if kind != "encoder-only" or checkpoint.config.n_classes else "The cat [MASK] on the mat."
    found = trace(checkpoint, sentence, None if kind == "encoder-only" else TARGET)
    asked = {"input_ids": torch.tensor([(found.source or found.target).ids])}
    if kind == "encoder-decoder":
        asked["decoder_input_ids"] = torch.tensor([found.target.ids])
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint.path)
    ids = tokenizer(sentence).input_ids
    assert list((found.source or found.target).ids[: len(ids)]) == ids
    if kind == "encoder-decoder":
        labels = tokenizer(text_target=TARGET).input_ids
        assert [*found.prediction.ids] == labels
        assert [*found.target.ids] == [model.config.decoder_start_token_id, *labels[:-1]]
    with torch.no_grad():
        expected = model(**asked, output_attentions=True)
    name_of_logits = "classifier.logits" if checkpoint.config.n_classes else f"{found.stacks[-1]}.logits"
    np.testing.assert_allclose(found.values(name_of_logits), expected.logits[0].numpy(), atol=2e-5)
    cross = expected.get("cross_attentions") or ()
    for layer, weights in enumerate(cross):
        np.testing.assert_allclose(found.attention("decoder", layer, "cross").weights, weights[0], atol=2e-5)


@pytest.mark.parametrize("name", ["hf-gpt2", "hf-llama", "hf-gemma2", "hf-neox", "hf-t5", "hf-marian"])
def test_greedy_writing_is_theirs(foreign, name: str) -> None:
    checkpoint, model = foreign(name), theirs(foreign(name))
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint.path)
    inputs = tokenizer(SENTENCE, return_tensors="pt")
    written = model.generate(
        inputs.input_ids, attention_mask=inputs.attention_mask, max_new_tokens=12, do_sample=False, use_cache=False
    )[0].tolist()
    found = decode(checkpoint, SENTENCE, Greedy(12))
    prompt = 1 if checkpoint.config.has_encoder else inputs.input_ids.shape[1]
    assert len(found.tokens) == 12  # at the last place BART and Marian force </s> upon their answer
    assert [*found.tokens.ids[:11]] == written[prompt:][:11]


@pytest.mark.parametrize("name", ["hf-bert", "hf-t5"])
def test_padding_changes_nothing(foreign, name: str) -> None:
    plain, padded = (trace(foreign(name), SENTENCE, source_pads=pads) for pads in (0, 3))
    assert padded.source.tokens[-1].role == "pad"
    assert padded.text.startswith(plain.text) or foreign(name).config.kind == "encoder-only"
    layer = plain.attention("encoder", 1).weights
    n = layer.shape[-1]
    np.testing.assert_allclose(padded.attention("encoder", 1).weights[:, :n, :n], layer, atol=1e-5)
    assert not padded.attention("encoder", 1).weights[..., n:].any()


def test_a_model_without_a_padding_token_says_so(foreign) -> None:
    with pytest.raises(ValueError, match="hf-gpt2 has no padding token"):
        trace(foreign("hf-gpt2"), SENTENCE, target_pads=2)


def test_a_trace_of_it_can_be_kept_in_a_file(foreign, tmp_path: Path) -> None:
    found = trace(foreign("hf-deberta"), SENTENCE)
    save_trace(found, tmp_path / "trace.safetensors")
    again = read_trace(tmp_path / "trace.safetensors")
    assert again.source == found.source
    assert again.names() == found.names()


def test_the_fingerprint_is_of_all_its_files(foreign, tmp_path: Path) -> None:
    folder = foreign_checkpoint("hf-marian", tmp_path)
    before = load(folder).fingerprint
    vocabulary = folder / "vocab.json"
    vocabulary.write_text(vocabulary.read_text() + " ")
    assert load(folder).fingerprint != before == foreign("hf-marian").fingerprint


def test_only_pickles_are_refused(foreign, tmp_path: Path) -> None:
    folder = foreign_checkpoint("hf-gpt2", tmp_path)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="a pickle, which may run any code"):
        load(folder)


@pytest.mark.parametrize("name", ["hf-gemma2", "hf-marian", "hf-bert-classes"])
def test_verify_agrees(foreign, name: str) -> None:
    found = verify(foreign(name), lengths=(1, 9, 40))
    assert [comparison.length for comparison in found] == [1, 9, 40]
    assert all(comparison.agrees for comparison in found)


def test_verify_finds_a_difference(foreign, tmp_path: Path) -> None:
    """One number changed in our copy of the weights, after both have read the same file."""
    checkpoint = load(foreign_checkpoint("hf-bert", tmp_path))
    checkpoint.model.encoder.layers[1].self_attention.query_projection.bias.data[0] += 0.5
    found = verify(checkpoint, lengths=(9,))[0]
    assert not found.agrees
    assert found.map.startswith("encoder.layers.")


def test_verify_on_the_command_line(foreign, checkpoints_folder: Path, capsys) -> None:
    assert main(["verify", str(foreign("hf-bert").path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["family"] == "bert"
    assert said["agrees"] is True
    assert main(["verify", str(checkpoints_folder / "tiny-gpt")]) == 2
    assert "nothing to compare it with" in capsys.readouterr().err


def test_inspect_lists_every_head_of_a_sentence(foreign, capsys) -> None:
    checkpoint = foreign("hf-llama")
    assert main(["inspect", str(checkpoint.path), SENTENCE, "--json"]) == 0
    heads = json.loads(capsys.readouterr().out)["heads"]
    assert len(heads) == checkpoint.config.n_decoder_layers * checkpoint.config.n_heads
    assert {head["layer"] for head in heads} == set(range(checkpoint.config.n_decoder_layers))


@pytest.mark.parametrize("name", ["nobody", "a/b/c", "../x", "a/.."])
def test_fetch_refuses_what_is_no_name(name: str, capsys) -> None:
    pytest.importorskip("huggingface_hub")
    assert main(["fetch", name, "--yes"]) == 2
    assert "no OWNER/NAME" in capsys.readouterr().err
