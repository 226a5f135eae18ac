"""Examples where heads and units fire equal single traces."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import transformer
from transformer.heads.firing_examples import head_firings, unit_firings
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
def test_largest_values_of_units_are_those_of_the_traces(tiny_checkpoint: Callable, name: str) -> None:
    checkpoint = tiny_checkpoint(name)
    stack = "encoder" if checkpoint.config.has_encoder else "decoder"
    found = unit_firings(checkpoint, SENTENCES, stack, 1, [3, 0], most=2)
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
