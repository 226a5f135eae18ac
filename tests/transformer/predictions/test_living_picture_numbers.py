"""The numbers of the living picture equal the trace's, for every kind of model and family."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import transformer
from transformer.predictions.answer_probabilities import class_probabilities, read_answer
from transformer.predictions.living_picture_numbers import (
    CANDIDATES,
    THREADS,
    UNITS,
    LivingPicture,
    living_picture_numbers,
    threads,
)
from transformer.runs.traces import Trace

SENTENCE = "The old man told us a story."


@pytest.fixture(scope="module", params=["translator", "gpt", "bert", "sentiment"])
def trace(request: pytest.FixtureRequest, tiny_checkpoint: Callable) -> Trace:
    return transformer.trace(tiny_checkpoint(request.param), SENTENCE)


def check_streams(picture: LivingPicture, trace: Trace) -> None:
    for stack in picture.stacks:
        names = [stack.steps[0].before, *(step.after for step in stack.steps)]
        for level, name in enumerate(names):
            assert np.allclose(stack.arrays["stream"][level], threads(trace.values(name)))
        for index, step in enumerate(stack.steps):
            before, update = trace.values(step.before), trace.values(step.update)
            assert np.allclose(stack.arrays["update"][index], threads(update))
            lengths = np.linalg.norm(update, axis=1) / np.linalg.norm(before, axis=1)
            assert np.allclose(stack.arrays["growth"][index], lengths)
            if stack.adds:
                stream = stack.arrays["stream"]
                assert np.allclose(stream[index] + stack.arrays["update"][index], stream[index + 1], atol=1e-4)
        assert stack.d_model == trace.values(names[0]).shape[1] and len(stack.tokens) == stack.arrays["stream"].shape[1]


def check_units(picture: LivingPicture, trace: Trace) -> None:
    for stack in picture.stacks:
        for layer in range(len(stack.arrays["units"])):
            prefix = f"{stack.name}.layers.{layer}.feed_forward"
            hidden, before = trace.values(f"{prefix}.hidden"), trace.values(f"{prefix}.pre_activation")
            for position in range(len(stack.tokens)):
                units = stack.arrays["units"][layer, position]
                assert len(set(units.tolist())) == len(units) == min(UNITS, hidden.shape[1])
                assert np.array_equal(stack.arrays["after_activation"][layer, position], hidden[position, units])
                assert np.array_equal(stack.arrays["before_activation"][layer, position], before[position, units])
                least = np.abs(hidden[position, units]).min()
                assert (np.abs(np.delete(hidden[position], units)) <= least).all()


def test_streams_updates_and_units_are_those_of_the_trace(trace: Trace) -> None:
    picture = living_picture_numbers(trace)
    check_streams(picture, trace)
    check_units(picture, trace)
    for attention in picture.attentions:
        for layer, weights in enumerate(attention.weights):
            view = trace.attention(attention.stack, layer, attention.kind)
            assert np.array_equal(weights, view.weights)
            assert np.array_equal(attention.allowed[layer], view.allowed)
    assert {(one.stack, one.kind) for one in picture.attentions} == set(trace.attention_kinds())


def test_what_was_written_is_the_answer(trace: Trace) -> None:
    picture, answer = living_picture_numbers(trace), read_answer(trace)
    if trace.checkpoint.config.n_classes:
        (row,) = picture.written
        parts = class_probabilities(trace)
        assert row.names == tuple(part.display for part in parts)
        assert np.allclose(row.probabilities, [part.probability for part in parts])
        return
    if not answer.parts:
        assert not picture.asked
    else:
        shown = [(row.names[row.chosen], row.probabilities[row.chosen]) for row in picture.written]
        assert [name for name, _ in shown] == [part.display for part in answer.parts]
        assert np.allclose([chance for _, chance in shown], [part.probability for part in answer.parts])
    for row in picture.written:
        assert len(row.names) == len(row.probabilities) == CANDIDATES
        likely = np.delete(row.probabilities, row.chosen)
        assert (np.diff(likely) <= 0).all()


def test_the_inside_of_a_layer_is_what_was_recorded(trace: Trace) -> None:
    wanted = [(stack, trace.n_layers(stack) - 1) for stack in trace.stacks]
    assert living_picture_numbers(trace).inside == ()
    for layer in living_picture_numbers(trace, inside=wanted).inside:
        prefix = f"{layer.stack}.layers.{layer.layer}"
        assert (layer.stack, layer.layer) in wanted
        for name, values in layer.arrays.items():
            recorded = trace.values(f"{prefix}.{name}")
            vector = trace[f"{prefix}.{name}"].axes == ("position", "model")
            assert np.allclose(values, threads(recorded)) if vector else np.array_equal(values, recorded), name
        for attention, scale in layer.scale.items():
            if not layer.plain[attention]:  # relative positions are added
                continue
            query, key, scores = (layer.arrays[f"{attention}.{part}"] for part in ("query", "key", "scores"))
            assert np.allclose(query @ key.transpose(0, 2, 1) * scale, scores, atol=1e-5)


def test_threads_are_means_of_neighbours() -> None:
    assert threads(np.arange(64.0).reshape(2, 32)).shape == (2, THREADS)
    assert threads(np.array([[1.0, 2.0, 3.0]]), 16).tolist() == [[1.0, 2.0, 3.0]], "no more threads than channels"
    uneven = threads(np.arange(10.0), 4)
    assert uneven.tolist() == [0.5, 3.0, 5.5, 8.0], "groups of 2, 3, 2 and 3"
