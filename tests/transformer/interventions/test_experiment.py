"""Effects of edits and importance of heads: known results for one model, for others one run per head."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

import transformer
from tests.conftest import ROOT
from tests.shipped import shipped
from tests.transformer.copying import COPYING, copying_checkpoint
from tests.transformer.single_runs import logits_alone, tokens_of
from transformer.faults.forward_faults import inject_fault
from transformer.heads.removed_head import removed_head
from transformer.interventions import experiment as experiment_module
from transformer.interventions.activation_patching import contrast
from transformer.interventions.compared_runs import (
    compared_row,
    followed_word,
    furthest_pair,
    heads_like,
    log_p_of_text,
    next_tokens,
    swapped_words,
)
from transformer.interventions.experiment import answer_under, experiment, padding_drift, same_tokens
from transformer.interventions.head_importance import Importance, head_importance, importance_by_chunks
from transformer.predictions.answer_probabilities import read_answer
from transformer.predictions.comparison import Piece, align, stream_similarity, word_diff, words
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
def test_all_heads_at_once_equal_one_by_one(tiny_checkpoint, name):
    checkpoint = tiny_checkpoint(name)
    found = transformer.trace(checkpoint, SENTENCE)
    results = [head_importance(found, rows=rows) for rows in (None, 3)]
    for place in all_heads(checkpoint.config):
        stack, kind, layer, head = place
        alone = experiment(found, [transformer.ablate_head(stack, layer=layer, kind=kind, head=head)])
        for result in results:
            (row,) = (row for row in result.measured if row.place == place)
            assert row.change == pytest.approx(alone.change, abs=CLOSE)
            assert row.kl == pytest.approx(alone.mean_kl, abs=CLOSE)
            assert result.table(stack, kind)[layer, head] == row.change
            assert row.predicts_otherwise == (alone.predicted[0] != alone.predicted[1])
    assert [row.place for row in results[0].measured] == list(all_heads(checkpoint.config))
    assert max(abs(row.change) for row in results[0].measured) > 0.01


def test_progress_and_cancel(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    found = transformer.trace(checkpoint, SENTENCE)
    seen, heads = [], all_heads(checkpoint.config)
    head_importance(found, rows=5, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(4, 12), (9, 12), (12, 12)]  # the encoder's four heads first
    first, second, _ = importance_by_chunks(found, heads=heads, rows=5)
    result = Importance(heads, (*first, *second))
    assert len(result.measured) == 9
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


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda found: [*importance_by_chunks(found, heads=[Head("encoder", "self", 0, 5)])], "no head 5; .* 0 to 1"),
        (lambda found: head_importance(found, rows=0), "rows is 0; a pass needs at least 1 head"),
        (lambda found: head_importance(found).table("decoder", "cross"), "no decoder cross-attention in this model"),
        (lambda found: experiment(found).candidates(99), "there is no step 99"),
        (lambda found: padding_drift(transformer.trace(found.checkpoint, SENTENCE, source_pads=1)), "padding already"),
    ],
)
def test_what_does_not_exist_is_refused(tiny_checkpoint, ask, message):
    found = transformer.trace(tiny_checkpoint("sentiment"), SENTENCE)
    with pytest.raises(ValueError, match=message):
        ask(found)


@pytest.mark.parametrize("name", KINDS)
def test_an_effect_is_what_a_run_with_the_edits_says(tiny_checkpoint, name):
    checkpoint = tiny_checkpoint(name)
    found = transformer.trace(checkpoint, SENTENCE)
    stack = found.stacks[-1]
    edits = [
        transformer.ablate_head(stack, layer=0, head=0),
        transformer.scale_head(stack, layer=1, head=1, factor=-20),
    ]
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
    alone, own = read_answer(transformer.trace(checkpoint, SENTENCE, edits=edits)), effect.answer_after
    assert effect.answer_before == experiment(found).answer_after == read_answer(found)
    assert own.text == answer_under(checkpoint, SENTENCE, edits).text == alone.text
    assert len(own.parts) == len(alone.parts) and own.probability == pytest.approx(alone.probability, rel=1e-3)


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
    found = transformer.trace(tiny_checkpoint(name), SENTENCE)
    effect, again = experiment(found, iter(())), same_tokens(found, ())
    assert effect.changed is found and effect.change == effect.mean_kl == 0
    assert all(np.array_equal(again.values(name), found.values(name)) for name in found.names())


def test_the_example_of_the_docstring_is_true(monkeypatch):
    monkeypatch.chdir(ROOT)
    found = doctest.testmod(experiment_module)
    assert found.attempted and not found.failed


def test_the_own_answer_does_not_depend_on_a_given_target(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    given = transformer.trace(checkpoint, SENTENCE, "Le vieil homme.")
    edits = [transformer.ablate_head("decoder", layer=0, kind="cross", head=1)]
    effect = experiment(given, edits, strategy=transformer.Greedy(3))
    own, edited = (transformer.decode(checkpoint, SENTENCE, transformer.Greedy(3), edits=e) for e in ((), edits))
    assert [part.display for part in effect.answer_before.parts] == list(own.tokens.displays)
    assert effect.answer_after.text == edited.text
    assert effect.asked.displays[-1] == given.prediction.displays[-2]


def test_two_sentences_are_aligned_but_their_log_probabilities_are_not_compared(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    found = transformer.trace(checkpoint, "The old man.")
    effect = experiment(found, sentence="The old dog sleeps.")
    assert effect.answer_after == read_answer(transformer.trace(checkpoint, "The old dog sleeps."))
    assert not effect.same_tokens and align(found.source, effect.changed.source).pairs[:2] == ((0, 0), (1, 1))
    with pytest.raises(ValueError, match="read other tokens .'The old man.', 'The old dog sleeps.'"):
        _ = effect.kl


@pytest.mark.parametrize("name", KINDS)
def test_another_sentence_can_be_read_with_the_same_answer(tiny_checkpoint, name):
    checkpoint, other = tiny_checkpoint(name), "The long man told us a old story."
    found = transformer.trace(checkpoint, "The old man told us a long story.")
    pair = experiment(found, sentence=other, keep_answer=True)
    assert pair.changed.prediction == found.prediction and pair.changed.sentence == other
    log_q = pair.asked.log_softmax(checkpoint, np.atleast_2d(logits_alone(checkpoint, tokens_of(pair.changed)).numpy()))
    np.testing.assert_allclose(pair.after, pair.asked.chosen(log_q), atol=1e-5)
    assert pair.predicted[1] == tuple(log_q.argmax(axis=-1)) and pair.kl.min() >= 0
    assert pair.predicted[0] == pair.asked.ids or checkpoint.config.has_decoder is False
    for refused, message in (("The.", "as many tokens"), (found.sentence, "the same as the clean one")):
        with pytest.raises(transformer.InputError, match=message):
            experiment(found, sentence=refused, keep_answer=True)


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


@pytest.mark.parametrize(
    ("name", "place"), [("sentiment", ("encoder", "self", 1, 0)), ("translator", ("decoder", "cross", 1, 0))]
)
def test_the_loss_without_a_head_is_the_mean_over_the_sentences_that_can_be_read(tiny_checkpoint, name, place):
    checkpoint, head = tiny_checkpoint(name), Head(*place)
    edit = transformer.ablate_head(head.stack, layer=head.layer, kind=head.kind, head=head.head)
    read = ["The old man told us a long story.", "She saw him.", "Yes."]
    effects = [experiment(transformer.trace(checkpoint, sentence), [edit]) for sentence in read]
    changes = np.concatenate([effect.after - effect.before for effect in effects])
    found = removed_head(checkpoint, ["", *read], head)
    assert (found.n_sentences, found.n_words, found.alone) == (3, len(changes), pytest.approx(changes.mean()))
    assert removed_head(checkpoint, read, head, most=1).n_sentences == 1
    with pytest.raises(transformer.InputError):
        removed_head(checkpoint, [""], head)


# ---- two runs side by side ------------------------------------------------------------------------------------------

STORY, LIE = "The old man told us a story.", "The old man told us a lie."


@pytest.fixture(scope="module")
def trace(tiny_checkpoint) -> transformer.Trace:
    return transformer.trace(tiny_checkpoint("translator"), STORY)


def test_the_head_that_looks_at_the_replaced_word_where_the_output_changes() -> None:
    one = "My grandmother bakes apple pie every Sunday."
    read = transformer.trace(shipped("en-fr"), one)
    other = one.replace("Sunday", "Monday")
    found = experiment(read, sentence=other)
    followed = followed_word(found, contrast(read, other).most_changed_turn)
    assert followed is not None and followed[0].kind == "cross"
    row = compared_row(found, *followed)
    assert row.queries == ("·dimanche", "·lundi")
    assert [row.keys[int(weights.argmax())] for weights in row.weights] == ["·Sunday / ·Monday"] * 2
    least, column = row.weights.max(axis=1).min(), row.keys.index("·Sunday / ·Monday")
    for layer in range(read.n_layers("decoder")):
        for head in range(read.checkpoint.config.heads_in("decoder")):
            same = compared_row(found, Head("decoder", "cross", layer, head), followed[1])
            at_the_word = (same.weights.argmax(axis=1) == column).all()
            assert not at_the_word or same.weights[:, column].min() <= least


@pytest.mark.parametrize(
    ("other", "swap"),
    [
        (LIE, ("story", "lie")),
        ("The old man told us all a story.", None),
        ("The old woman told us a lie.", None),
        (STORY, None),
    ],
)
def test_a_swap_is_one_word_for_another(other: str, swap: tuple[str, str] | None) -> None:
    assert swapped_words(word_diff(STORY, other)) == swap
    assert swapped_words(word_diff("a b c", "b c a")) is None, "a word that moves is not replaced by itself"


def test_a_text_that_the_model_ends_has_its_own_log_probability() -> None:
    gpt = shipped("gpt-en")
    read = transformer.trace(gpt, "My grandmother bakes apple pie every Sunday.")
    logits = read.values("decoder.logits").astype(float)
    logits[:, list(gpt.framing.never)] = -np.inf
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    expected = sum(log_p[row, id] for row, id in enumerate(read.prediction.ids))
    assert log_p_of_text(read) == pytest.approx(expected, rel=1e-5)
    assert log_p_of_text(transformer.trace(gpt, "He drinks cold milk, she drinks hot tea, he drinks cold")) is None


@pytest.mark.parametrize("other", [LIE, "The old man told us all a story."])
def test_the_changed_row_has_the_weights_of_both_sentences(trace, other: str) -> None:
    head = Head("encoder", "self", 1, 1)
    found = experiment(trace, sentence=other)
    row = compared_row(found, head)
    for side, run in enumerate((trace, found.changed)):
        view = run.attention("encoder", 1)
        weights = view.weights[1, view.query.labels.index(row.queries[side])]
        np.testing.assert_array_equal(row.weights[side][row.known[side]], weights.astype(float))
    assert row.known.sum(axis=1).tolist() == [len(trace.source), len(found.changed.source)]
    assert len(row.keys) == row.known.shape[1] and row.known.any(axis=0).all(), "every column is of A, of B or of both"


def test_a_run_beside_itself_has_nothing_that_differs(trace) -> None:
    found = experiment(trace)
    tokens = next_tokens(found)
    assert compared_row(found, Head("encoder", "self", 1, 1)) is None
    assert furthest_pair(stream_similarity(found.original, found.changed, "encoder")) is None
    assert tokens is not None and tokens.kl == tokens.most == 0
    assert list(tokens.before) == sorted(tokens.before, reverse=True)
    alike = heads_like(Head("decoder", "cross", 1, 0), trace, trace)
    assert alike.best == (1, 0) and alike.is_known and not alike.is_other_kind
    assert alike.distances[1, 0] == pytest.approx(0, abs=1e-9)
