"""Complete folders in Hugging Face's layout: read, padded and generated with as their code does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from tests.foreign_checkpoints import FOREIGN, foreign_checkpoint
from tests.transformer.guests.hugging_face import build
from tests.transformer.guests.their_numbers import check_trace, their_model
from tests.transformer.text.foreign_folders import SENTENCES, change_fields
from transformer import Beam, Checkpoint, CheckpointError, Greedy, decode, load, trace
from transformer.attribution.leave_one_out import leave_one_out
from transformer.files.languages import with_languages
from transformer.runs.inputs import padding_ids
from transformer.runs.next_sentence import segments_of
from transformer.runs.readings import readings

SENTENCE, TARGET = "The cat sat on the mat.", "Le chat est fatigué."


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_read_and_what_comes_out_are_theirs(guest, name: str) -> None:
    """Ids, logits and maps equal those of Hugging Face's tokenizer and model."""
    checkpoint = guest(name)
    kind = checkpoint.config.kind
    sentence = SENTENCE if kind != "encoder-only" or checkpoint.config.n_classes else "The cat [MASK] on the mat."
    found = trace(checkpoint, sentence, None if kind == "encoder-only" else TARGET)
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint.path)
    ids = tokenizer(sentence).input_ids
    assert list((found.source or found.target).ids[: len(ids)]) == ids
    if kind == "encoder-decoder":
        labels = tokenizer(text_target=TARGET).input_ids
        assert [*found.prediction.ids] == labels
        assert [*found.target.ids] == [their_model(checkpoint).config.decoder_start_token_id, *labels[:-1]]
    check_trace(found)


def test_a_pair_of_sentences_is_read_as_theirs(guest) -> None:
    checkpoint = guest("hf-bert")
    asked = transformers.AutoTokenizer.from_pretrained(checkpoint.path)("The cat.", "The mat is.", return_tensors="pt")
    found = trace(checkpoint, "The cat. || The mat is.")
    assert list(found.source.ids) == asked.input_ids[0].tolist()
    assert list(segments_of(found)) == asked.token_type_ids[0].tolist()
    check_trace(found, token_type_ids=asked.token_type_ids)


def generated(checkpoint: Checkpoint, **settings: object) -> list[list[int]]:
    """Return every text that ``generate`` returns after the prompt."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint.path)
    inputs = tokenizer(SENTENCE, return_tensors="pt")
    prompt = 1 if checkpoint.config.has_encoder else inputs.input_ids.shape[1]
    settings = {"do_sample": False, "use_cache": False, "attention_mask": inputs.attention_mask, **settings}
    return [text.tolist()[prompt:] for text in their_model(checkpoint).generate(inputs.input_ids, **settings)]


# If a token is excluded, ours redistributes its probability.
_OURS = {"forced_eos_token_id": None, "renormalize_logits": True}
WRITERS = ["hf-gpt2", "hf-llama", "hf-gemma2", "hf-neox", "hf-t5", "hf-marian", "hf-m2m100", "hf-marian-many"]


@pytest.mark.slow
@pytest.mark.sample("name", of=3)
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_a_beam_of_texts_of_one_length_is_theirs(guest, name: str, length_penalty: float) -> None:
    """With texts of equal length, both formulas of the length penalty rank texts alike."""
    checkpoint = guest(name)
    ends = [*checkpoint.framing.ends]
    never = replace(checkpoint.framing, never=(*checkpoint.framing.never, *ends))
    found = decode(replace(checkpoint, frame=never), SENTENCE, Beam(3, length_penalty, max_new_tokens=7))
    settings = {"num_beams": 3, "num_return_sequences": 3, "length_penalty": length_penalty, "max_new_tokens": 7}
    expected = generated(checkpoint, **settings, suppress_tokens=ends, **_OURS)
    assert [list(text.ids) for text in found.hypotheses] == expected


@pytest.mark.sample("name", of=3)
@pytest.mark.parametrize("name", WRITERS)
def test_greedy_writing_is_theirs(guest, name: str) -> None:
    checkpoint = guest(name)
    written = generated(checkpoint, max_new_tokens=12)[0]
    found = decode(checkpoint, SENTENCE, Greedy(12))
    assert len(found.tokens) == 12  # at the maximum length, BART and Marian force </s>
    assert [*found.tokens.ids[:11]] == written[:11]


def test_the_language_that_generate_forces_comes_first(guest, tmp_path: Path) -> None:
    """M2M100 generates by ``generation_config.json`` or the chosen language; ignored settings are named."""
    folder = foreign_checkpoint("hf-m2m100", tmp_path)
    french, german = (guest("hf-m2m100").tokenizer.languages[code] for code in ("fr", "de"))
    settings = {"forced_bos_token_id": french, "num_beams": 5, "min_length": 0, "no_repeat_ngram_size": 3}
    change_fields(folder / "generation_config.json", **settings)
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
    change_fields(folder / "config.json", decoder_start_token_id=None)
    assert load(folder).framing.given[0] == transformers.M2M100Config().decoder_start_token_id


@pytest.mark.parametrize("name", ["hf-bert", "hf-t5"])
def test_padding_changes_nothing(guest, name: str) -> None:
    plain, padded = (trace(guest(name), SENTENCE, source_pads=pads) for pads in (0, 3))
    assert padded.source.tokens[-1].role == "pad"
    assert padded.text.startswith(plain.text) or guest(name).config.kind == "encoder-only"
    layer = plain.attention("encoder", 1).weights
    n = layer.shape[-1]
    np.testing.assert_allclose(padded.attention("encoder", 1).weights[:, :n, :n], layer, atol=1e-5)
    assert not padded.attention("encoder", 1).weights[..., n:].any()


def test_a_model_without_a_padding_token_says_so(guest) -> None:
    with pytest.raises(ValueError, match="hf-gpt2 has no padding token"):
        padding_ids(guest("hf-gpt2"), 2)


def test_the_fingerprint_is_of_all_its_files(guest, tmp_path: Path) -> None:
    folder = foreign_checkpoint("hf-marian", tmp_path)
    before = load(folder).fingerprint
    vocabulary = folder / "vocab.json"
    vocabulary.write_text(vocabulary.read_text() + " ")
    assert load(folder).fingerprint != before == guest("hf-marian").fingerprint


def test_opening_maps_no_file_of_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Truncating a mapped file would end the process, which is the server."""
    import safetensors
    from transformers import modeling_utils

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a file of weights was mapped")

    for module in (safetensors, modeling_utils):
        monkeypatch.setattr(module, "safe_open", refuse)
    assert load(foreign_checkpoint("hf-gpt2", tmp_path)).is_guest


# ---- padding --------------------------------------------------------------------------------------------------------


UNKNOWN = "The 日 sat on the 本 mat."  # two words that the small vocabularies lack


def written(name: str, folder: Path, *, tokenizer: dict, **config: object) -> Path:
    """Return a folder of ``FOREIGN`` with other fields in its configs; ``None`` removes one."""
    path = foreign_checkpoint(name, folder)
    change_fields(path / "config.json", **config)
    change_fields(path / "tokenizer_config.json", **tokenizer)
    return path


def compare(checkpoint: Checkpoint) -> None:
    found = trace(checkpoint, UNKNOWN)
    asked = transformers.AutoTokenizer.from_pretrained(checkpoint.path)(UNKNOWN, return_tensors="pt")
    assert found.source.ids == tuple(asked.input_ids[0].tolist())
    check_trace(found, attention_mask=asked.attention_mask)


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
    found, expected = ({reading.index: reading for reading in readings(one, sentences)} for one in (without, padding))
    for index in range(len(sentences)):
        for one, other in zip(found[index].views, expected[index].views, strict=True):
            np.testing.assert_allclose(one.weights, other.weights, atol=1e-5)
    one, other = (leave_one_out(checkpoint, "The cat sat on the mat.") for checkpoint in (without, padding))
    np.testing.assert_allclose(one.probabilities, other.probabilities, atol=1e-5)


def test_padding_that_is_no_position_and_stands_in_a_text_is_refused(tmp_path: Path) -> None:
    """RoBERTa skips the padding id when it numbers positions, so later tokens of a text would move."""
    path = foreign_checkpoint("hf-m2m100", tmp_path)
    change_fields(path / "config.json", pad_token_id=3)
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


# ---- languages of an M2M100 with NLLB's tokenizer -------------------------------------------------------------------


def write(folder: Path) -> None:
    """Write an M2M100 with NLLB's tokenizer; its tables are longer than the vocabulary, as often."""
    tokenizer = transformers.NllbTokenizer().train_new_from_iterator(SENTENCES, 400)
    special = {f"{job}_token_id": getattr(tokenizer, f"{job}_token_id") for job in ("bos", "eos", "pad")}
    special["decoder_start_token_id"] = tokenizer.eos_token_id
    tokenizer.save_pretrained(folder)
    build("m2m100", vocab_size=len(tokenizer) + 3, **special).save_pretrained(folder)


def test_nllb_writes_behind_its_language_also_with_legacy_targets(tmp_path: Path) -> None:
    """A given output then has no language token, like their labels; a generated one has it."""
    write(tmp_path)
    tokenizer = transformers.NllbTokenizer.from_pretrained(tmp_path, legacy_behaviour=True, src_lang="eng_Latn")
    tokenizer.save_pretrained(tmp_path)
    checkpoint = with_languages(load(tmp_path), source="eng_Latn", target="fra_Latn")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    theirs.tgt_lang = "fra_Latn"
    asked = theirs("The cat sat.", return_tensors="pt")
    language = theirs.convert_tokens_to_ids("fra_Latn")
    model = build("m2m100").__class__.from_pretrained(tmp_path).eval()
    expected = model.generate(**asked, forced_bos_token_id=language, num_beams=1, do_sample=False, max_new_tokens=8)[0]
    found = decode(checkpoint, "The cat sat.", Greedy(max_new_tokens=7))
    assert list(checkpoint.framing.answer) == expected[:2].tolist() and language == expected[1]
    assert list(found.tokens.ids) == expected[2:].tolist()
    given = trace(checkpoint, "The cat sat.", "Le chat dort.")
    labels = theirs(text_target="Le chat dort.").input_ids
    assert labels[-1] == language and list(given.prediction.ids) == labels[:-1]


def test_an_m2m100_that_begins_with_padding_is_refused(tmp_path: Path) -> None:
    """Hugging Face does not count padding as a position, but ignores that when it generates with a cache."""
    write(tmp_path)
    model = build("m2m100").__class__.from_pretrained(tmp_path, decoder_start_token_id=1).eval()
    model.config.decoder_start_token_id = model.generation_config.decoder_start_token_id = model.config.pad_token_id
    source, target = torch.tensor([[5, 6, 2]]), torch.tensor([[model.config.pad_token_id, 7, 8]])
    with torch.no_grad():
        whole = model(input_ids=source, decoder_input_ids=target).logits[0, -1]
        first = model(input_ids=source, decoder_input_ids=target[:, :2], use_cache=True)
        step = model(
            encoder_outputs=(first.encoder_last_hidden_state,),
            decoder_input_ids=target[:, 2:],
            past_key_values=first.past_key_values,
        ).logits[0, -1]
    assert (whole - step).abs().max() > 1e-3
    model.save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="begins with the token 1, which is also the padding"):
        load(tmp_path)
