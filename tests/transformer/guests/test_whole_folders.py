"""Complete folders in Hugging Face's layout: loaded, traced, generated with, verified, from the shell."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from tests.foreign_checkpoints import FOREIGN, foreign_checkpoint
from tests.transformer.guests.hugging_face import CASES, GUEST_CASES
from transformer import Beam, Checkpoint, CheckpointError, Greedy, decode, load, read_trace, save_trace, trace
from transformer.__main__ import main
from transformer.files.languages import with_languages
from transformer.runs.next_sentence import next_sentence, segments_of

SENTENCE, TARGET = "The cat sat on the mat.", "Le chat est fatigué."


@pytest.fixture(scope="session")
def foreign(tmp_path_factory: pytest.TempPathFactory):
    """Return ``foreign("hf-t5")``, which loads one of ``FOREIGN``."""
    folder, found = tmp_path_factory.mktemp("foreign"), {}

    def get(name: str) -> Checkpoint:
        if name not in found:
            found[name] = load(foreign_checkpoint(name, folder))
        return found[name]

    return get


def theirs(checkpoint: Checkpoint) -> Any:
    architecture = json.loads((checkpoint.path / "config.json").read_text())["architectures"][0]
    assert architecture in {case[0] for case in (CASES | GUEST_CASES).values()}
    return getattr(transformers, architecture).from_pretrained(checkpoint.path, attn_implementation="eager").eval()


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_read_and_what_comes_out_are_theirs(foreign, name: str) -> None:
    """Ids, logits and maps equal those of Hugging Face's tokenizer and model."""
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
    logits = expected.logits if "logits" in expected else expected.prediction_logits
    np.testing.assert_allclose(found.values(name_of_logits), logits[0].numpy(), atol=2e-5)
    cross = expected.get("cross_attentions") or ()
    for layer, weights in enumerate(cross):
        np.testing.assert_allclose(found.attention("decoder", layer, "cross").weights, weights[0], atol=2e-5)


def test_a_pair_of_sentences_is_read_as_theirs(foreign) -> None:
    checkpoint, model = foreign("hf-bert"), theirs(foreign("hf-bert"))
    asked = transformers.AutoTokenizer.from_pretrained(checkpoint.path)("The cat.", "The mat is.", return_tensors="pt")
    found = trace(checkpoint, "The cat. || The mat is.")
    assert list(found.source.ids) == asked.input_ids[0].tolist()
    assert list(segments_of(found)) == asked.token_type_ids[0].tolist()
    with torch.no_grad():
        expected = model(**asked)
    np.testing.assert_allclose(found.values("encoder.logits"), expected.prediction_logits[0].numpy(), atol=2e-5)
    assert next_sentence(found) is None, "the head of a third-party model is not read"


def generated(checkpoint: Checkpoint, **settings: object) -> list[list[int]]:
    """Return every text that ``generate`` returns after the prompt."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint.path)
    inputs = tokenizer(SENTENCE, return_tensors="pt")
    prompt = 1 if checkpoint.config.has_encoder else inputs.input_ids.shape[1]
    settings = {"do_sample": False, "use_cache": False, "attention_mask": inputs.attention_mask, **settings}
    return [text.tolist()[prompt:] for text in theirs(checkpoint).generate(inputs.input_ids, **settings)]


# If a token is excluded, ours redistributes its probability.
_OURS = {"forced_eos_token_id": None, "renormalize_logits": True}
WRITERS = ["hf-gpt2", "hf-llama", "hf-gemma2", "hf-neox", "hf-t5", "hf-marian", "hf-m2m100", "hf-marian-many"]


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_a_beam_of_texts_of_one_length_is_theirs(foreign, name: str, length_penalty: float) -> None:
    """With texts of equal length, both formulas of the length penalty rank texts alike."""
    checkpoint = foreign(name)
    ends = [*checkpoint.framing.ends]
    never = replace(checkpoint.framing, never=(*checkpoint.framing.never, *ends))
    found = decode(replace(checkpoint, frame=never), SENTENCE, Beam(3, length_penalty, max_new_tokens=7))
    settings = {"num_beams": 3, "num_return_sequences": 3, "length_penalty": length_penalty, "max_new_tokens": 7}
    expected = generated(checkpoint, **settings, suppress_tokens=ends, **_OURS)
    assert [list(text.ids) for text in found.hypotheses] == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hf-m2m100", "hf-t5"])
def test_our_beam_also_finds_the_texts_that_theirs_drops(foreign, name: str) -> None:
    """Our beam keeps every text that ends; Hugging Face's drops unlikely endings."""
    checkpoint = foreign(name)
    best = decode(checkpoint, SENTENCE, Beam(3, length_penalty=0.0, max_new_tokens=7))
    written = generated(checkpoint, num_beams=3, length_penalty=0.0, max_new_tokens=7, **_OURS)[0]
    ends = [place for place, id in enumerate(written) if id in checkpoint.framing.ends]
    given = decode(checkpoint, SENTENCE, Greedy(7), forced=written[: ends[0] + 1 if ends else None])
    assert best.log_probability >= given.log_probability - 1e-4


@pytest.mark.parametrize("name", WRITERS)
def test_greedy_writing_is_theirs(foreign, name: str) -> None:
    checkpoint = foreign(name)
    written = generated(checkpoint, max_new_tokens=12)[0]
    found = decode(checkpoint, SENTENCE, Greedy(12))
    assert len(found.tokens) == 12  # at the maximum length, BART and Marian force </s>
    assert [*found.tokens.ids[:11]] == written[:11]


def test_the_language_that_generate_forces_comes_first(foreign, tmp_path: Path) -> None:
    """M2M100 generates by ``generation_config.json`` or the chosen language; ignored settings are named."""
    folder = foreign_checkpoint("hf-m2m100", tmp_path)
    french, german = (foreign("hf-m2m100").tokenizer.languages[code] for code in ("fr", "de"))
    settings = {"forced_bos_token_id": french, "num_beams": 5, "min_length": 0, "no_repeat_ngram_size": 3}
    file = folder / "generation_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))
    checkpoint = load(folder)
    assert checkpoint.framing.ignored == ("num_beams 5", "no_repeat_ngram_size 3")
    greedy = {"max_new_tokens": 8, "num_beams": 1, "no_repeat_ngram_size": 0}
    assert generated(checkpoint, **greedy)[0] == [french, *decode(checkpoint, SENTENCE, Greedy(7)).tokens.ids]
    spoken = with_languages(checkpoint, target="de")
    expected = generated(checkpoint, **greedy, forced_bos_token_id=german)[0]
    assert expected == [german, *decode(spoken, SENTENCE, Greedy(7)).tokens.ids]


def test_a_decoder_that_no_file_starts_begins_as_theirs(tmp_path: Path) -> None:
    folder = foreign_checkpoint("hf-m2m100", tmp_path)
    (folder / "generation_config.json").unlink()
    fields = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**fields, "decoder_start_token_id": None}))
    assert load(folder).framing.given[0] == transformers.M2M100Config().decoder_start_token_id


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
    found = trace(foreign("hf-bert"), SENTENCE)
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


def test_opening_maps_no_file_of_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Truncating a mapped file would end the process, which is the server."""
    import safetensors
    from transformers import modeling_utils

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a file of weights was mapped")

    for module in (safetensors, modeling_utils):
        monkeypatch.setattr(module, "safe_open", refuse)
    assert load(foreign_checkpoint("hf-gpt2", tmp_path)).is_guest


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
    assert "not the OWNER/NAME" in capsys.readouterr().err


def test_a_file_that_is_written_over_leaves_the_open_model_as_it_was(tmp_path: Path) -> None:
    """Overwrite in place, as ``safetensors`` saves: this would change or crash a mapped file."""
    folder = foreign_checkpoint("hf-llama", tmp_path)
    checkpoint, file = load(folder), folder / "model.safetensors"
    before = {name: parameter.clone() for name, parameter in checkpoint.model.named_parameters()}
    with open(file, "r+b") as content:
        content.seek(file.stat().st_size // 2)
        content.write(bytes(file.stat().st_size - content.tell()))
    changed = [name for name, values in checkpoint.model.named_parameters() if not torch.equal(values, before[name])]
    assert not changed
