"""Segment embeddings and the next-sentence head, against torch and by invariants."""

from __future__ import annotations

import copy

import pytest
import torch
from torch.nn import functional as F

import transformer
from tests.transformer.tiny import config, random_model
from transformer.embedding import segment_numbers
from transformer.errors import InputError
from transformer.probes import record
from transformer.runs.inputs import source_tensor
from transformer.runs.next_sentence import next_sentence, segments_of, sentence_letters

PAIR = torch.tensor([[1, 9, 17, 2, 8, 5, 11, 2]])
ALONE = torch.tensor([[1, 9, 17, 2]])
PAIRED_TEXT = "The cat sat. || The dog sleeps under the table."


def model(n_segments: int = 2):
    return random_model("encoder-only", n_segments=n_segments)


def test_a_separator_ends_its_segment_and_padding_belongs_to_the_first() -> None:
    ids = torch.tensor([[1, 9, 2, 8, 7, 2, 0, 0], [1, 9, 8, 2, 0, 0, 0, 0], [1, 9, 2, 5, 2, 6, 2, 3]])
    expected = [[0, 0, 0, 1, 1, 1, 0, 0], [0] * 8, [0, 0, 0, 1, 1, 1, 1, 1]]
    assert segment_numbers(ids, separator_id=2, pad_id=0, n_segments=2).tolist() == expected
    assert segment_numbers(ids, separator_id=2, pad_id=0, n_segments=1).tolist() == [[0] * 8] * 3


def test_the_embedding_is_the_sum_of_three_lookups() -> None:
    embedding = model().encoder.embedding
    numbers = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1]])
    expected = (
        F.embedding(PAIR, embedding.table.weight) * 16**0.5
        + embedding.position_encoding(8)
        + F.embedding(numbers, embedding.segment_table.weight)
    )
    with torch.inference_mode(), record() as recording:
        found = embedding(PAIR)
    torch.testing.assert_close(found, expected)
    parts = [recording.tensors[f"encoder.embedding.{part}"] for part in ("token", "position", "segment")]
    torch.testing.assert_close(found, sum(parts))


def test_the_head_reads_the_first_position_alone() -> None:
    encoder_only = model()
    head = encoder_only.next_sentence
    with torch.no_grad(), record() as recording:
        logits = encoder_only(PAIR)
    hidden = recording.tensors["encoder.final_norm.output"]
    pooled = torch.tanh(F.linear(hidden[:, 0], head.dense.weight, head.dense.bias))
    expected = F.linear(pooled, head.projection.weight, head.projection.bias)
    torch.testing.assert_close(recording.tensors["next_sentence.logits"], expected)
    assert logits.shape == (1, 8, 23), "what is returned are the logits of the tokens"
    hidden = hidden.clone()
    hidden[:, 1:] = 7.0
    with torch.no_grad():
        torch.testing.assert_close(head(hidden), expected)


def test_only_the_second_sentence_gets_the_second_vector() -> None:
    own = copy.deepcopy(model())
    with torch.inference_mode():
        alone, pair = own(ALONE), own(PAIR)
        own.encoder.embedding.segment_table.weight[1, :3] += 1.0
        torch.testing.assert_close(own(ALONE), alone, rtol=0, atol=0)
        assert (own(PAIR) - pair).abs().max() > 1e-3


def test_padding_changes_nothing() -> None:
    padded = F.pad(PAIR, (0, 3))
    with torch.inference_mode():
        torch.testing.assert_close(model()(padded)[:, :8], model()(PAIR))


@pytest.mark.parametrize("kind", ["encoder-decoder", "decoder-only"])
def test_only_an_encoder_has_segments(kind: str) -> None:
    with pytest.raises(ValueError, match="n_segments is 2, but only an encoder-only model has segment embeddings"):
        config(kind, n_segments=2)


def test_a_classifier_has_segments_and_no_next_sentence_head() -> None:
    classifier = random_model("encoder-only", n_segments=2, class_names=("a", "b"))
    assert classifier.encoder.embedding.segment_table.weight.shape == (2, 16)
    assert not hasattr(classifier, "next_sentence")


def test_a_config_without_segments_stays_as_it_was() -> None:
    assert "n_segments" not in config("encoder-only").to_json()
    assert not hasattr(model(0), "next_sentence")
    assert not any("segment" in name for name in model(0).probes)


def test_two_sentences_in_one_text(tiny_checkpoint) -> None:
    checkpoint = tiny_checkpoint("bert")
    encode = checkpoint.tokenizer.encode
    ids = source_tensor(checkpoint, PAIRED_TEXT)[0].tolist()
    assert ids == [1, *encode("The cat sat."), 2, *encode("The dog sleeps under the table."), 2]
    trace = transformer.trace(checkpoint, PAIRED_TEXT)
    n_first = 2 + len(encode("The cat sat."))
    assert segments_of(trace) == (0,) * n_first + (1,) * (len(ids) - n_first)
    assert trace.text == PAIRED_TEXT
    rows = checkpoint.model.encoder.embedding.segment_table.weight.detach().numpy()
    assert (trace.values("encoder.embedding.segment") == rows[list(segments_of(trace))]).all()


def test_the_answer_is_the_softmax_of_the_head(tiny_checkpoint) -> None:
    trace = transformer.trace(tiny_checkpoint("bert"), PAIRED_TEXT)
    answer = next_sentence(trace)
    expected = torch.softmax(torch.tensor(trace.values("next_sentence.logits")), dim=-1)
    assert answer.probabilities == pytest.approx(expected.tolist())
    assert answer.name == ("IsNext", "NotNext")[int(expected.argmax())]
    assert answer.probability == max(answer.probabilities)


def test_one_sentence_has_no_next_one(tiny_checkpoint) -> None:
    trace = transformer.trace(tiny_checkpoint("bert"), "The cat sat.", source_pads=2)
    assert set(segments_of(trace)) == {0}
    assert next_sentence(trace) is None
    assert trace.text == "The cat sat."
    assert next_sentence(transformer.trace(tiny_checkpoint("sentiment"), PAIRED_TEXT)) is None


def test_a_blank_on_either_side(tiny_checkpoint) -> None:
    trace = transformer.trace(tiny_checkpoint("bert"), "The ___ sat. || The dog ___.")
    assert [token.role for token in trace.source].count("mask") == 2
    assert trace.text.count("||") == 1 and "___" not in trace.text


@pytest.mark.parametrize("text", ["a || b || c", "a ||", " || b", "||"])
def test_more_or_fewer_than_two_sentences_are_refused(text: str, tiny_checkpoint) -> None:
    with pytest.raises(InputError, match=r"\|\| separates two sentences"):
        source_tensor(tiny_checkpoint("bert"), text)


def test_the_mark_is_text_for_a_model_without_segments(tiny_checkpoint) -> None:
    checkpoint = tiny_checkpoint("sentiment")
    assert source_tensor(checkpoint, "a || b")[0].tolist() == [1, *checkpoint.tokenizer.encode("a || b"), 2]


def test_a_third_segment_has_a_letter_of_its_own(monkeypatch: pytest.MonkeyPatch, tiny_checkpoint) -> None:
    trace = transformer.trace(tiny_checkpoint("bert"), "The cat sat.")
    assert sentence_letters(trace) == ("A",) * len(trace.source)
    monkeypatch.setattr("transformer.runs.next_sentence.segments_of", lambda _trace: (0, 1, 2))
    assert sentence_letters(trace) == ("A", "B", "C")
