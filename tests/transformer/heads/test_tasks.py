"""A model of several tasks reads every sentence behind one, whose tokens are none of the sentence's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from transformer.attention_maps.whole_words import word_spans
from transformer.heads.corpus_roles import corpus_roles
from transformer.heads.role_files import FILE, as_json, load_corpus_roles, save_corpus_roles
from transformer.heads.sentence_roles import sentence_roles
from transformer.runs.readings import readings, task_before, with_task

TASKS = ("fill: ", "translate English to French: ")
CAT = "The cat sat on the mat."


@pytest.fixture(scope="module")
def checkpoint(
    tiny_tokenizer: transformer.Tokenizer, tmp_path_factory: pytest.TempPathFactory
) -> transformer.Checkpoint:
    config = transformer.ModelConfig(
        vocabulary_size=tiny_tokenizer.vocabulary_size, d_model=16, n_heads=2, d_ff=24, n_encoder_layers=2,
        n_decoder_layers=2, max_length=96, positions="relative", rms_norm=True, task_prefixes=TASKS,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformer.build_model(config)
    path = tmp_path_factory.mktemp("tasks") / "tiny-tasks"
    transformer.save(path, model, tiny_tokenizer, card="# tiny-tasks\n\nRandom weights.\n")
    return transformer.load(path)


def test_a_sentence_without_a_task_is_read_behind_the_one_into_french(checkpoint: transformer.Checkpoint) -> None:
    assert task_before(checkpoint) == TASKS[1]
    asked = (CAT, TASKS[0] + CAT, "", "  ")
    assert [with_task(checkpoint, sentence) for sentence in asked] == [TASKS[1] + CAT, *asked[1:]]
    found = {reading.index: reading.views for batch in readings(checkpoint, asked) for reading in batch}
    assert found[2] == found[3] == (), "what is blank stays unread"
    for index in (0, 1):
        alone = transformer.trace(checkpoint, with_task(checkpoint, asked[index])).attention("encoder", 1)
        view = found[index][1]
        assert view.key.ids == alone.key.ids
        np.testing.assert_allclose(view.weights, alone.weights, atol=1e-6)


def test_the_tokens_of_the_task_count_as_special(checkpoint: transformer.Checkpoint) -> None:
    """And the words of a sentence are found behind them, those too that the task has as well."""
    for sentence in (CAT, TASKS[0] + CAT, "translate English to French"):
        ((reading,),) = readings(checkpoint, [sentence])
        tokens = reading.views[0].key
        assert tokens.text == sentence.removeprefix(TASKS[0]), "without special tokens the sentence alone is left"
        assert tokens[0].special, "the task's first"
    words = ("to", "the", "cat")
    ((reading,),) = readings(checkpoint, [" ".join(words)])
    tokens = reading.views[0].key
    begin, _ = word_spans(tokens, words)[0]
    assert "French" in "".join(token.text for token in tokens.tokens[:begin])


def test_a_file_that_was_counted_without_the_task_is_not_used(checkpoint: transformer.Checkpoint) -> None:
    roles = corpus_roles(checkpoint, (CAT, "She is drinking a cup of tea."))
    assert as_json(checkpoint, roles, sentence_file="two.txt")["task"] == TASKS[1]
    path = save_corpus_roles(checkpoint, roles, sentence_file="two.txt")
    assert load_corpus_roles(checkpoint) is not None
    values = json.loads(Path(path).read_text())
    del values["task"]
    (checkpoint.path / FILE).write_text(json.dumps(values))
    with pytest.raises(transformer.CheckpointError, match="other definitions"):
        load_corpus_roles(checkpoint)


def test_other_models_read_the_sentence_alone() -> None:
    checkpoint = transformer.load(Path(__file__).parents[3] / "checkpoints" / "en-fr")
    assert task_before(checkpoint) == "" and with_task(checkpoint, CAT) == CAT
    roles = load_corpus_roles(checkpoint).roles
    assert "task" not in as_json(checkpoint, roles, sentence_file="en.txt")


def test_the_task_before_one_sentence_does_not_break_the_diagonal() -> None:
    t5 = transformer.load(Path(__file__).parents[3] / "checkpoints" / "t5-small-tasks")
    trace = transformer.trace(t5, "translate English to French: She is reading a book.")
    view = trace.attention("decoder", 2, "cross")
    told = [token.display for token in view.key if token.role == "task"]
    assert "".join(told).replace("·", " ").strip() == "translate English to French:"
    assert not any(token.special for token in view.key if token.role == "task"), "they are words that were typed"
    assert sentence_roles(view)[1].role == "diagonal"  # the head on which this model opens
    plain = transformer.trace(t5, "She is reading a book.").attention("decoder", 2, "cross")
    assert not any(token.role == "task" for token in plain.key)
