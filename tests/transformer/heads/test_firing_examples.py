"""What heads attend to and where units fire over many sentences equals single traces and loops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import transformer
from tests.transformer.heads.attention import tokens
from transformer.heads import firing_examples
from transformer.heads.firing_examples import head_firings, unit_firings
from transformer.heads.head_atlas import (
    CROSS_KINDS,
    N_EXAMPLES,
    SELF_KINDS,
    halves_of,
    head_habits,
    kinds_of_pairs,
)
from transformer.runs.head_places import Head, attention_layers

KINDS = ("translator", "gpt", "bert", "sentiment")
SENTENCES = ("The cat sat on the mat.", "", "A dog sees the cat.", "The bird sings.")


def strongest(trace: transformer.Trace, head: Head, *, special: bool) -> tuple[float, int, int] | None:
    """Return the largest weight of a head among the cells that count, cell by cell.

    A decoder-only trace continues after the sentence; those rows are left out.
    """
    view = trace.attention(head.stack, head.layer, head.kind)
    config = trace.checkpoint.config
    n_rows = len(view.query)
    if config.kind == "decoder-only":
        n_rows = len(transformer.runs.inputs.prompt_ids(trace.checkpoint, trace.sentence))
    best = None
    for query in range(n_rows):
        if view.allowed[query].sum() < 2:
            continue
        for key in range(len(view.key)):
            if not view.allowed[query, key]:
                continue
            if not special and (view.query[query].special or view.key[key].special):
                continue
            weight = float(view.weights[head.head, query, key])
            if best is None or weight > best[0]:
                best = (weight, query, key)
    return best


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_largest_weights_of_every_head_are_those_of_the_traces(
    tiny_checkpoint: Callable, name: str, special: bool
) -> None:
    checkpoint = tiny_checkpoint(name)
    found = head_firings(checkpoint, SENTENCES, special=special, batch_size=2)
    traces = {index: transformer.trace(checkpoint, text) for index, text in enumerate(SENTENCES) if text}
    assert len(found) == sum(checkpoint.config.heads_in(stack) for stack, *_ in attention_layers(checkpoint.config))
    for head, firings in found.items():
        assert [firing.value for firing in firings] == sorted((f.value for f in firings), reverse=True)
        assert {firing.sentence for firing in firings} == {
            index for index, trace in traces.items() if strongest(trace, head, special=special)
        }
        for firing in firings:
            trace = traces[firing.sentence]
            view = trace.attention(head.stack, head.layer, head.kind)
            assert firing.value == pytest.approx(strongest(trace, head, special=special)[0], abs=1e-5)
            cell = view.weights[head.head, firing.query, firing.key]
            assert firing.value == pytest.approx(cell, abs=1e-5), "the cell that is named has this weight"
            row = view.weights[head.head, firing.query, : len(firing.read)]
            np.testing.assert_allclose(firing.strip, row, atol=1e-5)
            assert firing.asked.ids == view.query.ids[: len(firing.asked)]


@pytest.mark.parametrize("name", KINDS)
def test_largest_values_of_units_are_those_of_the_traces(
    tiny_checkpoint: Callable, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = tiny_checkpoint(name)
    stack = "encoder" if checkpoint.config.has_encoder else "decoder"
    monkeypatch.setattr(firing_examples, "MOST", 2)
    found = unit_firings(checkpoint, SENTENCES, stack, 1, [3, 0])
    assert list(found) == [3, 0]
    for unit, firings in found.items():
        values = {}
        for index, text in enumerate(SENTENCES):
            if text:
                trace = transformer.trace(checkpoint, text)
                tokens = next(f.read for f in unit_firings(checkpoint, [text], stack, 1, [unit])[unit])
                hidden = trace.values(f"{stack}.layers.1.feed_forward.hidden")[:, unit]
                values[index] = max(abs(float(hidden[t.index])) for t in tokens if not t.special)
        wanted = sorted(values, key=lambda index: -values[index])[:2]
        assert [firing.sentence for firing in firings] == wanted
        for firing in firings:
            assert abs(firing.value) == pytest.approx(values[firing.sentence], abs=1e-5)
            assert firing.strip[firing.key] == pytest.approx(firing.value)
            assert not firing.read[firing.key].special
    with pytest.raises(ValueError, match="there is no unit 4000; this layer has units 0 to"):
        unit_firings(checkpoint, SENTENCES, stack, 1, [4000])


def test_nothing_to_read_and_progress(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("gpt")
    with pytest.raises(transformer.InputError, match="cannot read any of the 2 sentences given"):
        head_firings(checkpoint, ["", " "])
    seen = []
    head_firings(checkpoint, SENTENCES, batch_size=2, progress=lambda *numbers: seen.append(numbers))
    assert seen == [(1, 4), (3, 4), (4, 4)]


# ---- habits of heads -------------------------------------------------------------------------------------------------

TEXTS = [
    "The old man told us a long story.",
    "A story, a long story!",
    "She saw him.",
    "The man saw the old man and the old man saw the man.",
    "Yes.",
]


def test_every_pair_of_tokens_is_of_one_kind():
    sequence = tokens(("<s>", "the", " cat", ",", " the", " dog", " and", " so", " on", " cat", " x"))
    found = np.array(SELF_KINDS)[kinds_of_pairs(sequence, sequence, cross=False)]
    assert list(found[:, 0]) == ["special"] * 11
    assert found[2, 2] == "itself" and found[2, 1] == "previous" and found[2, 3] == "next"
    assert found[9, 2] == "same" and found[2, 9] == "same"
    assert found[9, 3] == "after_same", "what followed the same token elsewhere comes before punctuation"
    assert found[7, 3] == "punctuation" and found[5, 3] == "punctuation"
    assert found[5, 2] == "near" and found[5, 7] == "near" and found[5, 8] == "near"
    assert found[6, 1] == "left" and found[5, 9] == "right"


def counted_by_hand(
    checkpoint, stack: str, kind: str, layer: int, head: int, sentences: list[str] = TEXTS
) -> tuple[dict[str, float], int]:
    """Return shares of kinds and the number of rows, from one trace after the other."""
    names = CROSS_KINDS if kind == "cross" else SELF_KINDS
    hits, rows = dict.fromkeys(names, 0), 0
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
            rows += 1
    return {name: count / rows for name, count in hits.items()}, rows


@pytest.mark.slow
@pytest.mark.sample("kind", "place", of=3)
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
    found = head_habits(checkpoint, TEXTS, batch_size=2)[Head(*place)]
    shares, rows = counted_by_hand(checkpoint, *place)
    assert found.n_rows == rows
    assert {habit.kind: habit.share for habit in found.habits} == pytest.approx(shares)
    for which in (0, 1):
        of_half, _ = counted_by_hand(checkpoint, *place, sentences=TEXTS[which::2])
        assert {habit.kind: habit.halves[which] for habit in found.habits} == pytest.approx(of_half)
    assert sum(habit.share for habit in found.habits) == pytest.approx(1)
    assert sum(habit.chance for habit in found.habits) == pytest.approx(1)


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
    found = head_habits(tiny_checkpoint("gpt"), TEXTS[:2])
    assert all(not habits.is_stable and np.isnan(habits.main.error) for habits in found.values())


def test_examples_are_of_their_kind(tiny_checkpoint):
    found = head_habits(tiny_checkpoint("gpt"), TEXTS)
    for habits in found.values():
        for habit in habits.habits:
            assert bool(habit.examples) == (habit.share > 0) and len(habit.examples) <= N_EXAMPLES
            for one in habit.examples:
                of = kinds_of_pairs(one.asked, one.read, cross=False)
                assert SELF_KINDS[of[one.query, one.key]] == habit.kind
                assert 0 < one.value <= 1
