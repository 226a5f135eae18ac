"""Effects of edits and the importance of heads, on a model whose answer is known and against one run per head."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from tests.transformer.copying import COPYING, copying_checkpoint
from transformer.interventions.change_of_answer import answer_under, candidates, effect_of, padding_drift, same_tokens
from transformer.interventions.head_importance import head_importance, importance_by_chunks
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
    assert change[COPYING] < -10 and kl[COPYING] > 3
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
        alone = effect_of(found, [edit])
        assert row.change == pytest.approx(alone.change, abs=CLOSE)
        assert row.kl == pytest.approx(alone.mean_kl, abs=CLOSE)
        assert result.table(stack, kind)[layer, head] == row.change
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
    assert rows == [4, 1]


def test_padded_and_without_a_blank(tiny_checkpoint):
    checkpoint = tiny_checkpoint("bert")
    found = transformer.trace(checkpoint, "The old man.", source_pads=3)
    effect = effect_of(found, [transformer.ablate_head("encoder", layer=0, head=1)])
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
    effect = effect_of(found, [])
    assert effect.change == 0.0 and effect.factor == 1.0 and effect.mean_kl == 0.0
    assert len(effect.kl) == len(effect.asked.displays) > 0
    for change in candidates(effect, 0):
        assert change.before == change.after


@pytest.mark.parametrize("name", KINDS)
def test_an_effect_is_what_a_run_with_the_edits_says(tiny_checkpoint, name):
    checkpoint = tiny_checkpoint(name)
    found = transformer.trace(checkpoint, SENTENCE)
    stack = found.stacks[-1]
    edits = [transformer.ablate_head(stack, layer=0, head=0), transformer.scale_head(stack, layer=1, head=1, factor=3)]
    effect = effect_of(found, edits)
    p, q = (
        np.exp(np.atleast_2d(run.values(effect.asked.logits).astype(np.float64))[list(effect.asked.rows)])
        for run in (found, effect.edited)
    )
    if checkpoint.config.has_decoder:
        p[:, NEVER_WRITTEN] = q[:, NEVER_WRITTEN] = 0
    p, q = p / p.sum(axis=-1, keepdims=True), q / q.sum(axis=-1, keepdims=True)
    ratio = np.divide(p, q, out=np.ones_like(p), where=q > 0)
    np.testing.assert_allclose(effect.kl, (p * np.log2(ratio)).sum(axis=-1), atol=1e-9)
    np.testing.assert_allclose(np.exp(effect.after), [row[id] for row, id in zip(q, effect.asked.ids, strict=True)])
    assert effect.mean_kl > 1e-5
    first = candidates(effect, 0, shown=3)
    assert [change.before for change in first] == sorted((change.before for change in first), reverse=True)
    assert first[0].before == pytest.approx(p[0].max()) and sum(change.chosen for change in first) == 1
    assert max(change.after for change in first) == pytest.approx(q[0].max())
    with pytest.raises(ValueError, match="there is no step 99"):
        candidates(effect, 99)
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
        if row.masked or name == "gpt":  # the causal mask hides what stands at the end, too
            assert row.logits < 1e-4 and abs(row.change) < 1e-4 and row.text == plain
        else:
            assert row.logits > 1e-3 and abs(row.change) > 1e-5
    with pytest.raises(ValueError, match="this trace holds padding already"):
        padding_drift(effect_of(_padded(checkpoint), []).original)


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
    effect = effect_of(found, iter(()))
    assert effect.edited is found
    assert effect.change == effect.mean_kl == 0
    again = same_tokens(found, ())
    assert all(np.array_equal(again.values(name), found.values(name)) for name in found.names())
