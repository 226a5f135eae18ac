"""The tokenizer's padding token is masked, whatever ``config.json`` calls padding."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from tests.foreign_checkpoints import foreign_checkpoint
from transformer import Checkpoint, CheckpointError, Greedy, decode, load, trace
from transformer.attribution.leave_one_out import leave_one_out
from transformer.runs.readings import readings

UNKNOWN = "The 日 sat on the 本 mat."  # two words that the small vocabularies lack


def written(name: str, folder: Path, *, tokenizer: dict, **config: object) -> Path:
    """Return a folder of ``FOREIGN`` with other fields in its configs; ``None`` removes one."""
    path = foreign_checkpoint(name, folder)
    for file, changes in (("config.json", config), ("tokenizer_config.json", tokenizer)):
        fields = json.loads((path / file).read_text()) | changes
        (path / file).write_text(json.dumps({key: value for key, value in fields.items() if value is not None}))
    return path


def compare(checkpoint: Checkpoint, target: str | None = None) -> None:
    found = trace(checkpoint, UNKNOWN, target)
    asked = transformers.AutoTokenizer.from_pretrained(checkpoint.path)(UNKNOWN, return_tensors="pt")
    assert found.source.ids == tuple(asked.input_ids[0].tolist())
    asked.pop("token_type_ids", None)
    if target is not None:
        asked["decoder_input_ids"] = torch.tensor([found.target.ids])
    model_class = getattr(transformers, json.loads((checkpoint.path / "config.json").read_text())["architectures"][0])
    model = model_class.from_pretrained(checkpoint.path, attn_implementation="eager").eval()
    with torch.no_grad():
        expected = model(**asked, output_attentions=True)
    logits = "classifier.logits" if checkpoint.config.n_classes else f"{found.stacks[-1]}.logits"
    theirs = expected.get("prediction_logits", expected.get("logits"))  # the former beside a next-sentence head
    np.testing.assert_allclose(found.values(logits), theirs[0].numpy(), atol=2e-5)
    maps = expected.get("encoder_attentions") or expected.attentions
    for layer, weights in enumerate(maps):
        np.testing.assert_allclose(found.attention("encoder", layer).weights, weights[0], atol=2e-5)


@pytest.mark.parametrize("name", ["hf-bert", "hf-bert-classes"])
def test_an_id_of_text_that_the_config_calls_padding_is_read(name: str, tmp_path: Path) -> None:
    """``pad_token_id`` is 0 by default, whichever token that is; here it is the unknown token."""
    checkpoint = load(written(name, tmp_path, tokenizer={}, pad_token_id=1))
    assert checkpoint.tokenizer.to_id("[UNK]") == 1 and checkpoint.config.pad_id == checkpoint.special.pad == 0
    compare(checkpoint)
    padded, plain = (trace(checkpoint, UNKNOWN, source_pads=pads).attention("encoder", 1).weights for pads in (2, 0))
    np.testing.assert_allclose(padded[:, : plain.shape[1], : plain.shape[1]], plain, atol=1e-5)


def test_a_tokenizer_that_pads_with_the_unknown_token_pads_nothing(tmp_path: Path) -> None:
    checkpoint = load(written("hf-bert-classes", tmp_path, tokenizer={"pad_token": "[UNK]"}, pad_token_id=1))
    assert checkpoint.config.pad_id is checkpoint.special.pad is None
    compare(checkpoint)
    with pytest.raises(ValueError, match="has no padding token"):
        trace(checkpoint, UNKNOWN, source_pads=2)


def test_texts_of_several_lengths_are_read_without_padding(tmp_path: Path) -> None:
    padding = load(foreign_checkpoint("hf-bert-classes", tmp_path / "padding"))
    without = load(written("hf-bert-classes", tmp_path, tokenizer={"pad_token": "[UNK]"}, pad_token_id=1))
    sentences = ["the cat", "The cat sat on the mat.", "a"]
    found, expected = (
        {reading.index: reading for batch in readings(one, sentences) for reading in batch}
        for one in (without, padding)
    )
    for index in range(len(sentences)):
        for one, other in zip(found[index].views, expected[index].views, strict=True):
            np.testing.assert_allclose(one.weights, other.weights, atol=1e-5)
    one, other = (leave_one_out(checkpoint, "The cat sat on the mat.") for checkpoint in (without, padding))
    np.testing.assert_allclose(one.probabilities, other.probabilities, atol=1e-5)


def test_padding_that_is_no_position_and_stands_in_a_text_is_refused(tmp_path: Path) -> None:
    """RoBERTa skips the padding id when it numbers positions, so later tokens of a text would move."""
    path = foreign_checkpoint("hf-m2m100", tmp_path)
    fields = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**fields, "pad_token_id": 3}))
    with pytest.raises(CheckpointError, match="pad_token_id 3, and the tokenizer pads with 1"):
        load(path)


def test_what_config_json_forces_does_not_count_beside_generation_config(tmp_path: Path) -> None:
    """``generate`` reads one of the two files: the config's own settings count if there is no other file."""
    path = written("hf-t5", tmp_path, tokenizer={}, forced_bos_token_id=5, num_beams=4)
    with_file = load(path)
    model = transformers.T5ForConditionalGeneration.from_pretrained(path).eval()
    asked = transformers.AutoTokenizer.from_pretrained(path)("The cat sat.", return_tensors="pt")
    expected = model.generate(**asked, do_sample=False, max_new_tokens=6, use_cache=False)[0]
    assert [*with_file.framing.answer, *decode(with_file, "The cat sat.", Greedy(6)).tokens.ids] == expected.tolist()
    assert not with_file.framing.ignored
    (path / "generation_config.json").unlink()
    alone = load(path).framing
    assert alone.answer == (0, 5) and alone.ignored == ("num_beams 4",)
