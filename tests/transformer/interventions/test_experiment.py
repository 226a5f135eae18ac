"""Effects of edits and importance of heads: known results for one model, for others one run per head."""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from tests.transformer.copying import COPYING, copying_checkpoint
from transformer.faults.forward_faults import inject_fault
from transformer.interventions import experiment as experiment_module
from transformer.interventions.experiment import answer_under, experiment, padding_drift, same_tokens
from transformer.interventions.head_importance import head_importance, importance_by_chunks
from transformer.predictions.answer_probabilities import read_answer
from transformer.predictions.comparison import Piece, word_diff, words
from transformer.runs.head_places import Head, all_heads
from transformer.text.tokenizer import NEVER_WRITTEN

SENTENCE = "The old man ___ the sea."
KINDS = ["translator", "gpt", "bert", "sentiment"]
# Two decimals of what hides a difference in the last bits of float32.
CLOSE = 2e-4


@pytest.fixture(scope="module")
def copying(tiny_tokenizer):
    return copying_checkpoint(tiny_tokenizer)


def test_the_head_that_carries_the_answer_is_the_only_one_that_matters(copying):
    found = transformer.trace(copying, "a b", strategy=transformer.Greedy(6))
    result = head_importance(found)
    (change,), (kl,) = result.table("decoder", "self"), result.table("decoder", "self", "kl")
    assert change[COPYING] < -10 and kl[COPYING] > 2
    others = np.arange(3) != COPYING
    assert np.abs(change[others]).max() < CLOSE and kl[others].max() < CLOSE


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("rows", [None, 3])
def test_all_heads_at_once_equal_one_by_one(tiny_checkpoint, name, rows):
    checkpoint = tiny_checkpoint(name)
    found = transformer.trace(checkpoint, SENTENCE)
    result = head_importance(found, rows=rows)
    assert result.complete and [row.place for row in result.measured] == list(all_heads(checkpoint.config))
    for row in result.measured:
        stack, kind, layer, head = row.place
        edit = transformer.ablate_head(stack, layer=layer, kind=kind, head=head)
        alone = experiment(found, [edit])
        assert row.change == pytest.approx(alone.change, abs=CLOSE)
        assert row.kl == pytest.approx(alone.mean_kl, abs=CLOSE)
        assert result.table(stack, kind)[layer, head] == row.change
        assert row.predicts_otherwise == (alone.predicted[0] != alone.predicted[1])
    assert max(abs(row.change) for row in result.measured) > 0.01


def test_progress_and_cancel(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    found = transformer.trace(checkpoint, SENTENCE)
    seen = []
    result = head_importance(
        found,
        rows=5,
        progress=lambda done, total: seen.append((done, total)),
        cancelled=lambda: len(seen) == 2,
    )
    assert seen == [(4, 12), (9, 12)]  # the encoder's four heads first
    assert not result.complete and len(result.measured) == 9
    assert np.isnan(result.table("decoder", "cross")).tolist() == [[False, True], [True, True]]


def test_the_encoder_does_not_run_for_heads_of_the_decoder(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    found, rows = transformer.trace(checkpoint, SENTENCE), []
    hook = checkpoint.model.encoder.register_forward_hook(lambda module, inputs, output: rows.append(len(output)))
    try:
        head_importance(found)
    finally:
        hook.remove()
    assert rows == [5, 1]  # the whole sentence and its four heads; then once for all heads of the decoder


def test_padded_and_without_a_blank(tiny_checkpoint):
    checkpoint = tiny_checkpoint("bert")
    found = transformer.trace(checkpoint, "The old man.", source_pads=3)
    effect = experiment(found, [transformer.ablate_head("encoder", layer=0, head=1)])
    assert effect.asked.everywhere
    assert [found.source[row].display for row in effect.asked.rows] == [
        t.display for t in found.source if not t.special
    ]
    result = head_importance(found)
    assert result.table("encoder", "self")[0, 1] == pytest.approx(effect.change, abs=CLOSE)


def test_importance_refuses_what_does_not_exist(tiny_checkpoint):
    checkpoint = tiny_checkpoint("sentiment")
    found = transformer.trace(checkpoint, SENTENCE)
    with pytest.raises(ValueError, match="there is no head 5; this model has heads 0 to 1"):
        list(importance_by_chunks(found, heads=[Head("encoder", "self", 0, 5)]))
    with pytest.raises(ValueError, match="rows is 0; a pass needs at least 1 head"):
        head_importance(found, rows=0)
    with pytest.raises(ValueError, match="there is no decoder cross-attention in this model"):
        head_importance(found).table("decoder", "cross")


@pytest.mark.parametrize("name", KINDS)
def test_no_edits_have_no_effect(tiny_checkpoint, name):
    checkpoint = tiny_checkpoint(name)
    found = transformer.trace(checkpoint, SENTENCE)
    effect = experiment(found, [])
    assert effect.change == 0.0 and effect.factor == 1.0 and effect.mean_kl == 0.0
    assert len(effect.kl) == len(effect.asked.displays) > 0
    for change in effect.candidates(0):
        assert change.before == change.after


@pytest.mark.parametrize("name", KINDS)
def test_an_effect_is_what_a_run_with_the_edits_says(tiny_checkpoint, name):
    checkpoint = tiny_checkpoint(name)
    found = transformer.trace(checkpoint, SENTENCE)
    stack = found.stacks[-1]
    edits = [transformer.ablate_head(stack, layer=0, head=0), transformer.scale_head(stack, layer=1, head=1, factor=3)]
    effect = experiment(found, edits)
    p, q = (
        np.exp(np.atleast_2d(run.values(effect.asked.logits).astype(np.float64))[list(effect.asked.rows)])
        for run in (found, effect.changed)
    )
    if checkpoint.config.has_decoder:
        p[:, NEVER_WRITTEN] = q[:, NEVER_WRITTEN] = 0
    p, q = p / p.sum(axis=-1, keepdims=True), q / q.sum(axis=-1, keepdims=True)
    ratio = np.divide(p, q, out=np.ones_like(p), where=q > 0)
    np.testing.assert_allclose(effect.kl, (p * np.log(ratio)).sum(axis=-1), atol=1e-9)
    np.testing.assert_allclose(np.exp(effect.after), [row[id] for row, id in zip(q, effect.asked.ids, strict=True)])
    assert effect.mean_kl > 1e-5
    first = effect.candidates(0, shown=3)
    assert [change.before for change in first] == sorted((change.before for change in first), reverse=True)
    assert first[0].before == pytest.approx(p[0].max()) and sum(change.chosen for change in first) == 1
    assert max(change.after for change in first) == pytest.approx(q[0].max())
    with pytest.raises(ValueError, match="there is no step 99"):
        effect.candidates(99)
    if checkpoint.config.has_decoder:
        written = transformer.decode(checkpoint, SENTENCE, edits=edits)
        new = answer_under(checkpoint, SENTENCE, edits)
        assert written.text.endswith(new.text)
        assert new.probability == pytest.approx(np.exp(written.log_probability), rel=0.3)


@pytest.mark.parametrize("name", KINDS)
def test_padding_changes_nothing_with_the_mask_and_something_without(tiny_checkpoint, name):
    checkpoint = tiny_checkpoint(name)
    found = transformer.trace(checkpoint, SENTENCE)
    rows = padding_drift(found, pads=(1, 3, 200))
    assert [(row.pads, row.masked) for row in rows] == [(1, True), (1, False), (3, True), (3, False)]
    plain = answer_under(checkpoint, SENTENCE, []).text
    for row in rows:
        if row.masked or name == "gpt":  # the causal mask also hides padding at the end
            assert row.logits < 1e-4 and abs(row.change) < 1e-4 and row.text == plain
        else:
            assert row.logits > 1e-3 and abs(row.change) > 1e-5
    with pytest.raises(ValueError, match="this trace holds padding already"):
        padding_drift(experiment(_padded(checkpoint), []).original)


def _padded(checkpoint):
    pads = {"source_pads": 1} if checkpoint.config.has_encoder else {"target_pads": 1}
    return transformer.trace(checkpoint, SENTENCE, **pads)


def test_words_are_compared_not_letters():
    assert word_diff("Le chat dort.", "Le chien  dort.") == (
        Piece("same", "Le"), Piece("removed", " chat"), Piece("added", " chien"), Piece("same", "  dort."),
    )  # fmt: skip
    assert word_diff("same", "same") == (Piece("same", "same"),)
    assert word_diff("", "new word") == (Piece("added", "new word"),)
    assert word_diff("gone", "") == (Piece("removed", "gone"),)
    assert word_diff("", "") == ()
    assert words("J'ai l'eau, aujourd'hui !") == ["J'ai", " l'eau", ",", " aujourd'hui", " !"]
    assert words("наша 猫。") == ["наша", " 猫", "。"]
    assert "".join(words("�é�r. ?!")) == "�é�r. ?!"


@pytest.mark.parametrize("name", KINDS)
def test_without_edits_nothing_is_run_again_and_nothing_changes(tiny_checkpoint, name):
    checkpoint = tiny_checkpoint(name)
    found = transformer.trace(checkpoint, SENTENCE)
    effect = experiment(found, iter(()))
    assert effect.changed is found
    assert effect.change == effect.mean_kl == 0
    again = same_tokens(found, ())
    assert all(np.array_equal(again.values(name), found.values(name)) for name in found.names())


def test_the_example_of_the_docstring_is_true(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[3])
    found = doctest.testmod(experiment_module)
    assert found.attempted and not found.failed


@pytest.mark.parametrize("name", KINDS)
def test_the_own_answer_of_a_changed_model_is_what_a_run_with_the_edits_writes(tiny_checkpoint, name):
    checkpoint = tiny_checkpoint(name)
    found = transformer.trace(checkpoint, SENTENCE)
    stack = found.stacks[-1]
    edits = [transformer.scale_head(stack, layer=layer, head=0, factor=-20) for layer in (0, 1)]
    effect, alone = experiment(found, edits), transformer.trace(checkpoint, SENTENCE, edits=edits)
    assert effect.answer_before == read_answer(found)
    assert effect.answer_after.text == read_answer(alone).text
    assert effect.answer_after.probability == pytest.approx(read_answer(alone).probability, rel=1e-3)
    assert len(effect.answer_after.parts) == len(read_answer(alone).parts)
    assert experiment(found).answer_after == read_answer(found)


def test_the_own_answer_does_not_depend_on_a_given_target(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    given = transformer.trace(checkpoint, SENTENCE, "Le vieil homme.")
    edits = [transformer.ablate_head("decoder", layer=0, kind="cross", head=1)]
    effect = experiment(given, edits, strategy=transformer.Greedy(3))
    assert [part.display for part in effect.answer_before.parts] == list(
        transformer.decode(checkpoint, SENTENCE, transformer.Greedy(3)).tokens.displays
    )
    assert effect.answer_after.text == transformer.decode(checkpoint, SENTENCE, transformer.Greedy(3), edits=edits).text
    assert effect.asked.displays[-1] == given.prediction.displays[-2]


def test_the_encoder_runs_once_for_all_that_is_written_after_its_edits(tiny_checkpoint):
    checkpoint, positions = tiny_checkpoint("translator"), {"encoder": [], "decoder": []}
    edits = [transformer.scale_head("encoder", layer=0, head=0, factor=3)]
    wanted = transformer.decode(checkpoint, SENTENCE, edits=edits, cached=False)
    hooks = [
        getattr(checkpoint.model, stack)
        .layers[0]
        .self_attention.weights.register_forward_hook(
            lambda module, inputs, output, stack=stack: positions[stack].append(output.shape[-2])
        )
        for stack in positions
    ]
    try:
        written = transformer.decode(checkpoint, SENTENCE, edits=edits)
        passes, _ = {stack: [*seen] for stack, seen in positions.items()}, [seen.clear() for seen in positions.values()]
        effect = experiment(transformer.trace(checkpoint, SENTENCE), edits)
        [seen.clear() for seen in positions.values()]
        assert effect.answer_after.text in written.text
    finally:
        for hook in hooks:
            hook.remove()
    assert written.tokens.ids == wanted.tokens.ids
    assert written.log_probability == pytest.approx(wanted.log_probability, abs=1e-4)
    assert passes == {"encoder": [len(wanted.source)], "decoder": [1] * len(wanted.tokens)}
    assert {stack: len(seen) for stack, seen in positions.items()} == {"encoder": 1, "decoder": len(wanted.tokens)}


def test_two_sentences_are_aligned_but_their_log_probabilities_are_not_compared(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    found = transformer.trace(checkpoint, "The old man.")
    effect = experiment(found, sentence="The old dog sleeps.")
    assert effect.answer_after == read_answer(transformer.trace(checkpoint, "The old dog sleeps."))
    assert not effect.same_tokens and effect.alignment("encoder").pairs[:2] == ((0, 0), (1, 1))
    with pytest.raises(ValueError, match="read other tokens .'The old man.', 'The old dog sleeps.'"):
        _ = effect.kl


@pytest.mark.parametrize("name", KINDS)
def test_another_sentence_can_be_read_with_the_same_answer(tiny_checkpoint, name):
    checkpoint, other = tiny_checkpoint(name), "The long man told us a old story."
    found = transformer.trace(checkpoint, "The old man told us a long story.")
    pair = experiment(found, sentence=other, keep_answer=True)
    assert pair.changed.prediction == found.prediction and pair.changed.sentence == other
    inputs = [torch.tensor([pair.changed.tokens(stack).ids]) for stack in found.stacks]
    with torch.inference_mode():
        logits = np.atleast_2d(checkpoint.model(*inputs)[0].numpy())
    log_q = pair.asked.log_softmax(checkpoint, logits)
    np.testing.assert_allclose(pair.after, pair.asked.chosen(log_q), atol=1e-5)
    assert pair.predicted[1] == tuple(log_q.argmax(axis=-1)) and pair.kl.min() >= 0
    assert pair.predicted[0] == pair.asked.ids or checkpoint.config.has_decoder is False
    with pytest.raises(transformer.InputError, match="as many tokens"):
        experiment(found, sentence="The.", keep_answer=True)
    with pytest.raises(transformer.InputError, match="the same as the clean one"):
        experiment(found, sentence=found.sentence, keep_answer=True)


def test_another_checkpoint_reads_the_same_tokens(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    other, _edits = inject_fault(checkpoint, "norm")
    effect = experiment(transformer.trace(checkpoint, SENTENCE), checkpoint=other)
    assert effect.same_tokens and effect.changed.checkpoint is other and effect.change != 0
    assert effect.answer_after == answer_under(other, SENTENCE)


def test_a_language_models_own_output_is_as_long_as_the_given_continuation(tiny_checkpoint):
    checkpoint = tiny_checkpoint("gpt")
    found = transformer.trace(checkpoint, "The old man", target="the sea was cold")
    edit = transformer.ablate_head("decoder", layer=0, kind="self", head=0)
    tested = experiment(found, [edit])
    target = checkpoint.tokenizer.encode_continuation("The old man", "the sea was cold")
    own = transformer.decode(checkpoint, "The old man", transformer.Greedy(len(target))).tokens.ids
    assert tested.answer_before.text == checkpoint.tokenizer.decode(own)
