"""Induction in one sentence, by attention to what followed an earlier occurrence.

Roles over many sentences: batches give the same results as single sentences, and hand-built heads get their roles.

A model of several tasks reads every sentence after a task prefix, whose tokens do not belong to the sentence.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from tests.transformer.copying import COPYING, copying_checkpoint
from tests.transformer.inducing import INDUCTION, induction_checkpoint
from transformer.attention_maps.whole_words import word_spans
from transformer.errors import InputError
from transformer.heads.head_roles import HeadRole, corpus_roles, head_roles, sentence_roles, summarise
from transformer.heads.role_files import FILE, as_json, load_corpus_roles, save_corpus_roles
from transformer.heads.role_measures import n_annotated
from transformer.heads.weight_patterns import LEAST_SHARE, patterns_of
from transformer.runs.head_places import Head
from transformer.runs.readings import readings, task_before, with_task
from transformer.text.sentence_files import SHIPPED, read_sentences, sentence_digest, split_sentences

CHECKPOINTS = Path(__file__).parents[3] / "checkpoints"
TWICE = "horse milk Paris Friday Mary. horse milk Paris Friday"


def view_of(name: str, sentence: str, layer: int, stack: str = "decoder"):
    return transformer.trace(transformer.load(CHECKPOINTS / name), sentence).attention(stack, layer, "self")


def test_a_list_said_twice_shows_induction_and_the_share_is_what_followed_the_last_time() -> None:
    view = view_of("gpt-en", TWICE, layer=2)
    ids = view.key.ids
    for role in sentence_roles(view):
        shares = []
        for row, token in enumerate(view.query):
            behind = [key for key in range(1, row + 1) if ids[key - 1] == ids[row]]
            if behind and not token.special:
                shares.append(sum(view.weights[role.head, row, key] for key in behind))
        assert role.scores["induction"] == pytest.approx(np.mean(shares), abs=1e-6)
        assert (role.role == "induction") == (role.score >= LEAST_SHARE)
    assert sentence_roles(view)[4].role == "induction"  # the head that this model opens with


def test_a_head_that_does_something_else_more_keeps_its_role() -> None:
    view = view_of("gpt-en", TWICE, layer=1)
    for plain, found in zip(head_roles(view), sentence_roles(view), strict=True):
        assert found.role == plain.role
        assert found.scores["induction"] < LEAST_SHARE


@pytest.mark.parametrize(
    ("followed", "elsewhere", "role", "awake"),
    [(0.16, 0.04, "induction", 0.8), (0.06, 0.14, "sink", 0.3), (0.09, 0.01, "sink", 0.9), (0.12, 0.3, "sink", 2 / 7)],
)
def test_a_head_at_rest_that_wakes_up_for_what_followed_is_an_induction_head(followed, elsewhere, role, awake) -> None:
    view = view_of("gpt-en", TWICE, layer=2)
    behind = patterns_of(view)["after_repeated"] & view.allowed
    weights = np.zeros_like(view.weights[:1])
    weights[0, :, 0] = 1  # the head attends to the sink <s>
    for row in np.flatnonzero(behind.any(axis=1)):
        weights[0, row, behind[row].argmax()] = followed
        weights[0, row, row] = elsewhere
        weights[0, row, 0] = 1 - followed - elsewhere
    (found,) = sentence_roles(replace(view, weights=weights, scores=view.scores[:1]))
    assert (found.role, found.scores["awake"]) == (role, pytest.approx(awake, abs=1e-4))
    assert found.scores["sink"] >= LEAST_SHARE  # most of its weight is on the sink all the same


@pytest.mark.parametrize(
    ("name", "sentence", "stack"),
    [("gpt-en", "I want to", "decoder"), ("bert-en", "the cat saw the cat and the ___ cat.", "encoder")],
)
def test_nothing_is_said_without_repetition_nor_of_a_model_that_reads_both_sides(name, sentence, stack) -> None:
    view = view_of(name, sentence, layer=0, stack=stack)
    assert all("induction" not in role.scores for role in sentence_roles(view))


SENTENCES = (
    "The cat sat on the mat.",
    "Go!",
    "She saw the sea, and the sea was cold.",
    "Do you know where the old man lives with his dog?",
    "It is late.",
    "The children told us a long story about the train, the bus and the small red car.",
)
KINDS = ("translator", "gpt", "bert", "sentiment")


def by_batches(checkpoint, sentences, batch_size):
    found = [reading for batch in readings(checkpoint, sentences, batch_size=batch_size) for reading in batch]
    return [[role for view in reading.views for role in head_roles(view)] for reading in found]


def assert_same(found, expected):
    assert [(r.stack, r.kind, r.layer, r.head) for r in found] == [(r.stack, r.kind, r.layer, r.head) for r in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.scores.keys() == other.scores.keys()
        for name in one.scores:
            np.testing.assert_allclose(one.scores[name], other.scores[name], atol=2e-5, err_msg=f"{name} of {one}")
        assert one.role == other.role


@pytest.mark.parametrize("kind", KINDS)
def test_a_padded_batch_says_what_the_sentences_say_one_by_one(tiny_checkpoint, kind):
    checkpoint = tiny_checkpoint(kind)
    alone = by_batches(checkpoint, SENTENCES, 1)
    assert len(alone) == len(SENTENCES)
    for batch_size in (2, 4, 100):
        for together, single in zip(by_batches(checkpoint, SENTENCES, batch_size), alone, strict=True):
            assert_same(together, single)


@pytest.mark.parametrize("kind", ["translator", "bert", "sentiment"])
def test_a_sentence_of_a_batch_has_the_roles_of_its_own_trace(tiny_checkpoint, kind):
    checkpoint = tiny_checkpoint(kind)
    by_length = sorted(SENTENCES, key=lambda sentence: len(checkpoint.tokenizer.encode(sentence)))
    for sentence, roles in zip(by_length, by_batches(checkpoint, by_length, 4), strict=True):
        trace = transformer.trace(checkpoint, sentence)  # a trace of the model's own translation
        expected = [
            role
            for stack, attention in trace.attention_kinds()
            for layer in range(trace.n_layers(stack))
            for role in head_roles(trace.attention(stack, layer, attention))
        ]
        assert_same(roles, expected)


def test_the_head_that_copies_the_previous_token_is_labelled_so(tiny_tokenizer):
    checkpoint = copying_checkpoint(tiny_tokenizer)
    sentences = [sentence for sentence in SENTENCES if len(tiny_tokenizer.encode(sentence)) < 30]
    assert len(sentences) >= 4
    found = corpus_roles(checkpoint, sentences)
    head = found.head("decoder", "self", 0, COPYING)
    assert (head.role, head.most_frequent, head.nearest) == ("previous", "previous", "previous")
    assert head.shares == {"previous": 1.0} and head.consistency == 1.0
    assert head.score > 0.95 and not head.is_induction_head
    measured = head.measured
    assert (measured.strongest, measured.where["offset"], measured.has_role) == ("offset", -1, True)
    assert measured.measures["offset"].score == 1.0 and measured.profile[-1] > 0.95
    assert head.scores["previous_random"] > 0.95
    # Its first row, which may attend only to itself, does not count; the second one attends to <s>.
    assert head.scores["confidence"] < 1.0 and head.scores["entropy"] < 0.01


def test_the_induction_head_that_was_built_by_hand_is_labelled_so(tiny_tokenizer):
    found = corpus_roles(induction_checkpoint(tiny_tokenizer), ["The cat sat."])
    heads = [head.place for head in found.heads if head.is_induction_head]
    assert heads == [Head("decoder", "self", *INDUCTION)] == list(found.induction.heads)
    head = found.head("decoder", "self", *INDUCTION)
    assert head.measured.measures["induction"].chance == found.induction.chance
    assert head.measured.measures["induction"].reached


def role(name: str, *, broad: float = 0.5, **scores: float) -> HeadRole:
    return HeadRole("encoder", "self", 1, 0, name, {"broad": broad, **scores})


def test_the_role_is_the_one_of_at_least_half_of_the_sentences():
    nan = float("nan")
    found = summarise(
        [
            role("sink", sink=0.9, repeated=nan),
            role("sink", sink=0.7, repeated=0.4),
            role("none", sink=0.2, repeated=nan),
            role("previous", sink=0.4, repeated=0.2),
            role("none", broad=nan, sink=nan, repeated=nan),  # too short for a role
        ]
    )
    assert (found.role, found.consistency, found.n_sentences) == ("sink", 0.5, 4)
    assert found.shares == {"previous": 0.25, "sink": 0.5, "none": 0.25}
    assert found.score == pytest.approx(0.55)
    assert found.scores["repeated"] == pytest.approx(0.3) and found.counts["repeated"] == 2
    rarer = summarise([role("sink", sink=0.9), role("previous", sink=0.1), role("broad", sink=0.1)])
    assert (rarer.role, rarer.most_frequent, rarer.leaning) == ("none", "previous", "previous")
    assert found.leaning == "" and summarise([role("none")] * 10 + [role("sink")]).leaning == ""
    assert rarer.consistency == pytest.approx(1 / 3)
    assert math.isnan(rarer.score)


def test_sentences_that_tell_nothing_give_no_role(tiny_checkpoint):
    found = corpus_roles(tiny_checkpoint("gpt"), ["x"])
    assert found.n_sentences == 1
    assert {head.role for head in found.heads} == {"none"}
    assert {head.n_sentences for head in found.heads} == {0}
    assert all(math.isnan(head.consistency) and head.shares == {} for head in found.heads)


def test_what_cannot_be_read_is_skipped_and_counted(tiny_checkpoint):
    checkpoint, seen = tiny_checkpoint("bert"), []
    sentences = [*SENTENCES, "word " * 300, "  "]
    found = corpus_roles(checkpoint, sentences, batch_size=4, progress=lambda done, total: seen.append((done, total)))
    assert (found.n_sentences, found.n_skipped) == (len(SENTENCES), 2)
    assert found.digest == sentence_digest(sentences)
    total = 8 + n_annotated(checkpoint)
    assert seen[:3] == [(2, total), (6, total), (8, total)] and seen[-1] == (total, total) and seen == sorted(seen)
    alone = corpus_roles(checkpoint, SENTENCES)
    assert [head.shares for head in found.heads] == [head.shares for head in alone.heads]
    with pytest.raises(InputError, match="tiny-bert cannot read any of the 2 sentences given.* at most 96 tokens"):
        corpus_roles(checkpoint, sentences[-2:])
    with pytest.raises(ValueError, match="batch_size is 0"):
        corpus_roles(checkpoint, SENTENCES, batch_size=0)


def test_what_the_progress_raises_ends_the_work(tiny_checkpoint):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        corpus_roles(tiny_checkpoint("gpt"), SENTENCES, progress=stop)


def test_confidence_leaves_out_special_tokens_and_sinks_count_them(tiny_checkpoint):
    checkpoint = tiny_checkpoint("bert")
    view = transformer.trace(checkpoint, SENTENCES[0]).attention("encoder", 1)
    found = head_roles(view)
    for head in range(view.n_heads):
        np.testing.assert_allclose(
            found[head].scores["confidence"], view.weights[head][:, 1:-1].max(axis=1).mean(), rtol=1e-5
        )
        np.testing.assert_allclose(
            found[head].scores["sinks"], found[head].scores["sink"] + found[head].scores["punctuation"], rtol=1e-5
        )


def test_the_sentences_that_ship_are_different_and_short():
    sentences = read_sentences()
    assert 60 <= len(sentences) <= 100
    assert len(set(sentences)) == len(sentences)
    assert max(map(len, sentences)) < 120 and all(sentence.isprintable() for sentence in sentences)
    for sign in "?!;,\"'":
        assert any(sign in sentence for sentence in sentences)


def test_a_file_of_sentences(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_bytes("\ufeffOne. \r\n\n  Two, too.\n".encode())
    assert read_sentences(path) == ("One.", "Two, too.") == split_sentences("One.\nTwo, too.")
    path.write_text("\n \n", encoding="utf-8")
    with pytest.raises(InputError, match=r"mine.txt contains no sentence"):
        read_sentences(path)
    path.write_bytes(b"caf\xe9\n")
    with pytest.raises(InputError, match=r"mine.txt is not UTF-8"):
        read_sentences(path)
    with pytest.raises(InputError, match=r"There is no file .*other.txt"):
        read_sentences(tmp_path / "other.txt")
    assert sentence_digest(["a", "b"]) != sentence_digest(["b", "a"]) != sentence_digest(["ba"])
    assert SHIPPED.is_file()


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
    """The words of a sentence are found after the task, including words that the task contains as well."""
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
    assert sentence_roles(view)[1].role == "diagonal"  # the head that this model opens with
    plain = transformer.trace(t5, "She is reading a book.").attention("decoder", 2, "cross")
    assert not any(token.role == "task" for token in plain.key)
