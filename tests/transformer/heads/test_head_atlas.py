"""Habits of heads, counted again in plain loops, and for heads with known behaviour."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

import transformer
import transformer.heads.head_atlas as habits_module
from transformer.attention_maps.attention_path import norm_weighted
from transformer.attribution.direct_logit_attribution import attribute
from transformer.errors import InputError
from transformer.heads.firing_examples import read_batches
from transformer.heads.head_atlas import (
    CROSS_KINDS,
    N_EXAMPLES,
    N_INTERVALS,
    SELF_KINDS,
    HeadHabits,
    RowMeasures,
    halves_of,
    head_habits,
    kinds_of_pairs,
)
from transformer.layers.residual_stream import Part
from transformer.runs.head_places import Head
from transformer.text.sentence_files import read_sentences
from transformer.text.tokens import Token, TokenSequence

SENTENCES = [
    "The old man told us a long story.",
    "A story, a long story!",
    "She saw him.",
    "The man saw the old man and the old man saw the man.",
    "Yes.",
]


def kinds_of(*texts: str, special: tuple[int, ...] = ()) -> np.ndarray:
    ids = {text: id for id, text in enumerate(dict.fromkeys(texts))}
    tokens = tuple(
        Token(index, ids[text], text, text.replace(" ", "·"), special=index in special)
        for index, text in enumerate(texts)
    )
    sequence = TokenSequence(tokens)
    return np.array(SELF_KINDS)[kinds_of_pairs(sequence, sequence, cross=False)]


def test_every_pair_of_tokens_is_of_one_kind():
    found = kinds_of("<s>", "the", " cat", ",", " the", " dog", " and", " so", " on", " cat", " x", special=(0,))
    assert list(found[:, 0]) == ["special"] * 11
    assert found[2, 2] == "itself" and found[2, 1] == "previous" and found[2, 3] == "next"
    assert found[9, 2] == "same" and found[2, 9] == "same"
    assert found[9, 3] == "after_same", "what followed the same token elsewhere comes before punctuation"
    assert found[7, 3] == "punctuation" and found[5, 3] == "punctuation"
    assert found[5, 2] == "near" and found[5, 7] == "near" and found[5, 8] == "near"
    assert found[6, 1] == "left" and found[5, 9] == "right"


def counted_by_hand(
    checkpoint, stack: str, kind: str, layer: int, head: int, sentences: list[str] = SENTENCES
) -> tuple[dict[str, float], int, list[int]]:
    """Return shares of kinds, number of rows and rows by interval, from one trace after the other."""
    names = CROSS_KINDS if kind == "cross" else SELF_KINDS
    hits, rows, intervals = dict.fromkeys(names, 0), 0, [0] * N_INTERVALS
    for sentence in sentences:
        trace = transformer.trace(checkpoint, sentence)
        view = trace.attention(stack, layer, kind)
        of = kinds_of_pairs(view.query, view.key, cross=kind == "cross")
        gpt = not checkpoint.config.has_encoder  # its trace continues with the generated text
        for query in range(1 + len(checkpoint.tokenizer.encode(sentence)) if gpt else len(view.query)):
            allowed = [key for key in range(len(view.key)) if view.allowed[query, key]]
            if view.query[query].special or len(allowed) < 2:
                continue
            best = max(allowed, key=lambda key: view.weights[head, query, key])
            hits[names[of[query, best]]] += 1
            intervals[min(N_INTERVALS - 1, int(view.weights[head, query, best] * N_INTERVALS))] += 1
            rows += 1
    return {name: count / rows for name, count in hits.items()}, rows, intervals


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("gpt", ("decoder", "self", 1, 1)),
        ("bert", ("encoder", "self", 0, 0)),
        ("sentiment", ("encoder", "self", 1, 0)),
        ("translator", ("encoder", "self", 1, 1)),
        ("translator", ("decoder", "self", 0, 1)),
        ("translator", ("decoder", "cross", 1, 0)),
    ],
)
def test_shares_are_those_of_plain_loops(tiny_checkpoint, kind, place):
    checkpoint = tiny_checkpoint(kind)
    found = head_habits(checkpoint, SENTENCES, batch_size=2)[Head(*place)]
    shares, rows, intervals = counted_by_hand(checkpoint, *place)
    assert found.n_rows == rows
    assert {habit.kind: habit.share for habit in found.habits} == pytest.approx(shares)
    assert [round(interval.share * rows) for interval in found.intervals["weight"]] == intervals
    for which in (0, 1):
        of_half, _, _ = counted_by_hand(checkpoint, *place, sentences=SENTENCES[which::2])
        assert {habit.kind: habit.halves[which] for habit in found.habits} == pytest.approx(of_half)
    assert sum(habit.share for habit in found.habits) == pytest.approx(1)
    assert sum(habit.chance for habit in found.habits) == pytest.approx(1)


def test_halves_vary_by_whole_sentences():
    """Twelve rows that all do the same in one sentence are one observation, not twelve."""
    half = np.arange(8) % 2
    rows = np.array([12, 12, 12, 12, 12, 12, 12, 12])
    alike = np.array([12, 0, 12, 12, 0, 0, 12, 0])  # every sentence does the same throughout
    (first, second), error = halves_of(alike, rows, half)
    assert (first, second) == (0.75, 0.25)
    # By hand: for each half the means of sentences are 1, 1, 1, 0 (and 0, 1, 0, 0), their standard error 0.25
    assert error == pytest.approx(np.sqrt(2 * 0.25**2))
    by_rows = np.sqrt(0.5 * 0.5 * (1 / 48 + 1 / 48))
    assert abs(first - second) > 2 * by_rows and abs(first - second) <= 2 * error, "no more than chance, though"
    mixed = np.array([9, 3, 9, 3, 9, 3, 9, 3])  # the same shares, with every sentence agreeing
    (first, second), error = halves_of(mixed, rows, half)
    assert (first, second) == (0.75, 0.25) and error == 0


def test_halves_of_sentences_of_several_lengths_are_those_of_a_bootstrap():
    generator = np.random.default_rng(3)
    rows = generator.integers(3, 20, size=80)
    hits = generator.binomial(rows, generator.beta(2, 2, size=80))
    half = np.arange(80) % 2
    _, error = halves_of(hits, rows, half)
    drawn = []
    for _ in range(4000):
        pick = [generator.choice(np.flatnonzero(half == which), 40) for which in (0, 1)]
        first, second = (hits[own].sum() / rows[own].sum() for own in pick)
        drawn.append(first - second)
    assert error == pytest.approx(np.std(drawn), rel=0.06)


def test_a_half_of_one_sentence_says_nothing(tiny_checkpoint):
    found = head_habits(tiny_checkpoint("gpt"), SENTENCES[:2])
    assert all(not habits.is_stable and np.isnan(habits.main.error) for habits in found.values())


def test_examples_are_of_their_kind_and_of_their_strength(tiny_checkpoint):
    found = head_habits(tiny_checkpoint("gpt"), SENTENCES)
    for habits in found.values():
        for habit in habits.habits:
            assert bool(habit.examples) == (habit.share > 0) and len(habit.examples) <= N_EXAMPLES
            for one in habit.examples:
                of = kinds_of_pairs(one.asked, one.read, cross=False)
                assert SELF_KINDS[of[one.query, one.key]] == habit.kind
        for intervals in habits.intervals.values():
            assert len(intervals) == N_INTERVALS and sum(one.share for one in intervals) == pytest.approx(1)
            for interval in intervals:
                assert all(interval.low - 1e-6 <= one.value <= interval.high + 1e-6 for one in interval.examples)
                assert len(interval.examples) == min(N_EXAMPLES, round(interval.share * habits.n_rows))


def test_examples_do_not_depend_on_the_batches(tiny_checkpoint):
    checkpoint = tiny_checkpoint("gpt")
    one, other = (head_habits(checkpoint, SENTENCES, batch_size=size) for size in (1, 4))
    assert one.keys() == other.keys()
    places = [
        [[(e.sentence, e.query, e.key) for e in habit.examples] for habit in found[head].habits]
        for head in one
        for found in (one, other)
    ]
    assert places[::2] == places[1::2]
    seeds = [head_habits(checkpoint, SENTENCES, seed=seed) for seed in (1, 2)]
    drawn = [[[e.query for e in habit.examples] for habit in found[head].habits] for found in seeds for head in found]
    assert drawn[: len(one)] != drawn[len(one) :], "another seed draws other rows"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("gpt", ("decoder", "self", 1, 1)),
        ("bert", ("encoder", "self", 0, 1)),
        ("translator", ("decoder", "self", 0, 1)),
        ("translator", ("decoder", "cross", 1, 0)),
        ("hf-bert", ("encoder", "self", 1, 0)),
        ("hf-llama", ("decoder", "self", 1, 1)),
    ],
)
def test_what_is_passed_on_and_the_effect_are_those_of_one_sentence(tiny_checkpoint, family, kind, place):
    checkpoint = family(kind) if kind.startswith("hf-") else tiny_checkpoint(kind)
    head, n_examples = Head(*place), 0
    found = head_habits(checkpoint, SENTENCES, batch_size=3)[head]
    traces = [transformer.trace(checkpoint, sentence) for sentence in SENTENCES]
    for measure in ("weight", "passed", "effect"):
        for one in (one for interval in found.intervals[measure] for one in interval.examples):
            trace = traces[one.sentence]
            if measure == "effect":
                logits = trace.values(f"{place[0]}.logits")[one.query]
                word, other = np.argsort(-logits, kind="stable")[:2]
                whole = attribute(trace, one.query, token=int(word), against=int(other))
                expected = whole.of(Part(f"{head.kind}_attention", head.layer, head.head))
            else:
                of_layer = place[:1] + (head.layer, head.kind)
                view = trace.attention(*of_layer)
                row = (view.weights if measure == "weight" else norm_weighted(trace, *of_layer))[head.head, one.query]
                expected = row.max()
                assert row[one.key] == pytest.approx(expected, rel=1e-4)
            assert one.value == pytest.approx(expected, rel=1e-3, abs=1e-5)
            n_examples += 1
    assert n_examples > 30


def test_in_a_classifier_the_rows_add_up_to_the_effect_on_the_class(tiny_checkpoint):
    checkpoint = tiny_checkpoint("sentiment")
    found = head_habits(checkpoint, SENTENCES[:1])[Head("encoder", "self", 1, 0)]
    trace = transformer.trace(checkpoint, SENTENCES[0])
    best, other = np.argsort(-trace.values("classifier.logits"), kind="stable")[:2]
    whole = attribute(trace, token=int(best), against=int(other))
    words = [token.index for token in trace.source if not token.special]
    measures = RowMeasures(checkpoint)
    (batch,) = read_batches(checkpoint, SENTENCES[:1], batch_size=1, parts=measures.parts, progress=None)
    layer = next(rows for rows in measures.of_sentence(batch, 0) if rows.place == ("encoder", "self", 1))
    effects = layer.measures["effect"].values[0]
    assert effects.sum() == pytest.approx(whole.of(Part("self_attention", 1, 0)), rel=1e-3, abs=1e-6)
    assert found.means["effect"] == pytest.approx(effects[words].mean(), rel=1e-4)


def test_a_head_whose_part_of_the_output_projection_is_zero_passes_nothing_on(tiny_checkpoint):
    whole = tiny_checkpoint("translator")
    model = copy.deepcopy(whole.model)
    with torch.no_grad():
        model.encoder.layers[1].self_attention.output_projection.weight[:, : model.config.d_head] = 0.0
    habits = head_habits(replace(whole, model=model), SENTENCES)[Head("encoder", "self", 1, 0)]
    assert habits.means["weight"] > 0 and habits.means["passed"] == 0
    first, *others = habits.intervals["passed"]
    assert first.share == 1 and first.high > first.low and not any(one.share for one in others)


def test_nothing_reads_words_out_of_a_translators_encoder(tiny_checkpoint):
    found = head_habits(tiny_checkpoint("translator"), SENTENCES)
    assert "effect" not in found[Head("encoder", "self", 1, 1)].intervals
    assert "effect" in found[Head("decoder", "cross", 1, 1)].intervals


def known(checkpoint: str, *place) -> HeadHabits:
    return head_habits(transformer.load(f"checkpoints/{checkpoint}"), read_sentences())[Head(*place)]


def test_a_previous_token_head_looks_one_back_and_not_always():
    found = known("gpt-en", "decoder", "self", 1, 0)
    assert found.main.kind == "previous" and found.main.share > 0.5 > found.main.chance
    assert found.against.share < found.main.share and found.against.examples


def test_more_rows_than_fit_into_memory_are_refused(tiny_checkpoint, monkeypatch):
    monkeypatch.setattr(habits_module, "ALWAYS", 0)
    monkeypatch.setattr(habits_module, "allowed_bytes", lambda: 1000)
    with pytest.raises(InputError, match="Use fewer or shorter sentences"):
        head_habits(tiny_checkpoint("gpt"), SENTENCES)


def test_what_cannot_be_read_is_a_sentence(tiny_checkpoint):
    with pytest.raises(InputError):
        head_habits(tiny_checkpoint("gpt"), [""])
