"""Edits of an included checkpoint in NumPy and float64, and decoding strategies as plain loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from tests.transformer.numpy_forward import Arrays, NumpyTransformer
from transformer.runs.edit_specs import edits_from

CHECKPOINTS = Path(__file__).resolve().parents[2] / "checkpoints"
SENTENCE, TARGET, OTHER = "The cat sat on the mat.", "Le chat dort.", "It is raining on the old garden today."
PAD, START, END = 0, 1, 2

loaded = cache(lambda name: transformer.load(CHECKPOINTS / name))
by_hand = cache(lambda name: NumpyTransformer(CHECKPOINTS / name))


def run_by_hand(name: str, trace: transformer.Trace, changes: dict | None = None) -> Arrays:
    model = by_hand(name)
    model.changes = changes or {}
    return dict(model.forward(*(list(part.ids) if part is not None else None for part in (trace.source, trace.target))))


# ---- edits ----------------------------------------------------------------------------------------------------------


def one_head(head: int, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    def edit(context: np.ndarray) -> np.ndarray:  # [head, query, channel]
        context = context.copy()
        context[head] = change(context[head])
        return context

    return edit


def mean_so_far(rows: np.ndarray) -> np.ndarray:
    return np.stack([rows[: row + 1].mean(axis=0) for row in range(len(rows))])


def cell_by_cell(rule: Callable[[int, int, bool], bool]) -> Callable[[np.ndarray], np.ndarray]:
    """Return a mask from a rule about query, key and whether the model allows the cell."""
    return lambda mask: np.array(
        [[rule(query, key, bool(mask[query, key])) for key in range(mask.shape[1])] for query in range(mask.shape[0])]
    )


def without_edge(weights: np.ndarray) -> np.ndarray:
    weights = weights.copy()
    weights[1, 2, 2] = 0
    return weights


ENCODER, DECODER, CROSS = (
    "encoder.layers.1.self_attention",
    "decoder.layers.1.self_attention",
    "decoder.layers.1.cross_attention",
)
EVERY_LAYER = [f"decoder.layers.{layer}.self_attention.allowed" for layer in range(3)]
EDITS = {
    "zero:encoder.1.self.3": {f"{ENCODER}.context": one_head(3, lambda rows: rows * 0)},
    "zero:decoder.1.cross.7": {f"{CROSS}.context": one_head(7, lambda rows: rows * 0)},
    "scale:decoder.1.self.2=-1.5": {f"{DECODER}.context": one_head(2, lambda rows: rows * -1.5)},
    "mean:encoder.1.self.0": {f"{ENCODER}.context": one_head(0, lambda rows: np.tile(rows.mean(0), (len(rows), 1)))},
    "mean:decoder.1.cross.4": {f"{CROSS}.context": one_head(4, mean_so_far)},
    "edge:decoder.1.cross.1=2-2": {f"{CROSS}.weights": without_edge},
    "drop:encoder.1.feed_forward": {"encoder.layers.1.feed_forward.output": lambda x: x * 0},
    "drop:decoder.1.cross": {f"{CROSS}.output": lambda x: x * 0},
    "mask:decoder.*.self=no_causal": dict.fromkeys(EVERY_LAYER, cell_by_cell(lambda query, key, allowed: True)),
    "mask:encoder.1.self=no_padding": {f"{ENCODER}.allowed": cell_by_cell(lambda query, key, allowed: True)},
    "mask:encoder.1.self=window 2": {
        f"{ENCODER}.allowed": cell_by_cell(lambda query, key, allowed: allowed and abs(query - key) < 2)
    },
    "mask:decoder.*.self=itself": dict.fromkeys(EVERY_LAYER, cell_by_cell(lambda query, key, allowed: query == key)),
    "mask:decoder.1.cross=keys 0,4": {
        f"{CROSS}.allowed": cell_by_cell(lambda query, key, allowed: allowed and key not in (0, 4))
    },
    "mask:decoder.1.self=block 0-0": {  # the first row may attend to nothing
        f"{DECODER}.allowed": cell_by_cell(lambda query, key, allowed: allowed and (query, key) != (0, 0))
    },
    "mask:decoder.1.self=allow 1-3": {
        f"{DECODER}.allowed": cell_by_cell(lambda query, key, allowed: allowed or (query, key) == (1, 3))
    },
}


def compare(found: transformer.Trace, expected: Arrays) -> None:
    for name in found.names():
        scale = max(1.0, float(np.abs(expected[name]).max()))
        np.testing.assert_allclose(found.values(name), expected[name], rtol=0, atol=2e-5 * scale, err_msg=name)


@pytest.mark.parametrize("spec", EDITS)
def test_every_edit_does_what_is_done_by_hand(spec: str) -> None:
    checkpoint = loaded("en-fr")
    found = transformer.trace(checkpoint, SENTENCE, TARGET, edits=edits_from(checkpoint, [spec]), source_pads=3)
    plain = run_by_hand("en-fr", found)
    expected = run_by_hand("en-fr", found, EDITS[spec])
    compare(found, expected)
    assert np.abs(expected["decoder.logits"] - plain["decoder.logits"]).max() > 1e-3, (
        "else the edit would prove nothing"
    )


def test_a_head_of_another_run_and_an_activation_of_another_run() -> None:
    checkpoint = loaded("en-fr")
    there = run_by_hand("en-fr", transformer.trace(checkpoint, OTHER))[f"{ENCODER}.context"][5]
    found = transformer.trace(
        checkpoint, SENTENCE, TARGET, edits=edits_from(checkpoint, [f"patch:encoder.1.self.5={OTHER}"])
    )
    n_read = len(found.source)
    assert len(there) > n_read
    compare(found, run_by_hand("en-fr", found, {f"{ENCODER}.context": one_head(5, lambda rows: there[:n_read])}))


@pytest.mark.parametrize("part", ["self", "cross", "feed_forward"])
def test_without_a_residual_the_stream_is_what_the_sublayer_says(part: str) -> None:
    checkpoint = loaded("en-fr")
    found = transformer.trace(
        checkpoint, SENTENCE, TARGET, edits=edits_from(checkpoint, [f"residual:decoder.1.{part}"])
    )
    sublayer = part if part == "feed_forward" else f"{part}_attention"
    after = "out" if part == "feed_forward" else f"after_{sublayer}"
    expected = run_by_hand(
        "en-fr",
        found,
        {f"decoder.layers.1.residual.{after}": lambda x: by_hand("en-fr").seen[f"decoder.layers.1.{sublayer}.output"]},
    )
    compare(found, expected)


# ---- writing --------------------------------------------------------------------------------------------------------


def log_p_by_hand(name: str, source: list[int] | None, prompt: list[int]) -> np.ndarray:
    """Return log p of the next token, [vocabulary], computed from scratch, without ``<pad>`` and ``<s>``."""
    model = by_hand(name)
    model.changes = {}
    logits = model.forward(source, prompt)["decoder.logits"][-1].copy()
    logits[[PAD, START]] = -np.inf
    highest = logits.max()
    return logits - highest - math.log(np.exp(logits - highest).sum())


def source_of(name: str, sentence: str) -> tuple[list[int] | None, list[int]]:
    """Return the input of the encoder, and the first tokens of the decoder."""
    ids = loaded(name).tokenizer.encode(sentence)
    return ([*ids, END], [START]) if by_hand(name).config["kind"] == "encoder-decoder" else (None, [START, *ids])


@pytest.mark.parametrize("name", ["en-fr", "gpt-en"])
def test_greedy_is_a_plain_loop(name: str) -> None:
    source, prompt = source_of(name, SENTENCE)
    found = transformer.decode(loaded(name), SENTENCE, transformer.Greedy(max_new_tokens=8))
    ids, total = [], 0.0
    while len(ids) < 8 and END not in ids:
        log_p = log_p_by_hand(name, source, prompt + ids)
        ids.append(int(log_p.argmax()))
        total += log_p[ids[-1]]
    assert list(found.tokens.ids) == ids
    assert found.log_probability == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize(
    "settings", [{"temperature": 0.7}, {"top_k": 3}, {"temperature": 1.6, "top_k": 40, "top_p": 0.8}]
)
def test_sampling_is_a_plain_loop(settings: dict) -> None:
    source, prompt = source_of("en-fr", SENTENCE)
    found = transformer.decode(loaded("en-fr"), SENTENCE, transformer.Sample(**settings, seed=5, max_new_tokens=4))
    generator = torch.Generator().manual_seed(5)
    ids: list[int] = []
    for step in found.steps:
        log_p = log_p_by_hand("en-fr", source, prompt + ids)
        powers = np.exp(log_p / settings.get("temperature", 1.0))
        order = sorted(range(len(powers)), key=lambda id: -powers[id])
        kept = order[: settings.get("top_k", len(order))]
        whole, mass, nucleus = powers[kept].sum(), 0.0, []
        for id in kept:
            if mass >= settings.get("top_p", 1.0):
                break
            nucleus.append(id)
            mass += powers[id] / whole
        chances = np.zeros_like(powers)
        chances[nucleus] = powers[nucleus] / powers[nucleus].sum()
        for candidate in step.candidates:
            assert candidate.probability == pytest.approx(math.exp(log_p[candidate.id]), abs=2e-5)
            assert candidate.chance == pytest.approx(chances[candidate.id], abs=5e-5)
        drawn = int(torch.multinomial(torch.tensor(chances, dtype=torch.float32), 1, generator=generator))
        assert step.chosen.id == drawn
        ids.append(drawn)


def test_a_beam_is_a_plain_loop() -> None:
    """Wu et al. 2016, §7: keep ``width`` unfinished texts; ended ones score log p / ((5 + |Y|) / 6)^0.6."""
    width, limit = 3, 9
    source, prompt = source_of("en-fr", "He sleeps.")
    found = transformer.decode(loaded("en-fr"), "He sleeps.", transformer.Beam(width, 0.6, max_new_tokens=limit))
    live, finished = [(0.0, [])], []
    for length in range(1, limit + 1):
        longer = []
        for total, ids in live:
            log_p = log_p_by_hand("en-fr", source, prompt + ids)
            finished.append(((total + log_p[END]) / ((5 + length) / 6) ** 0.6, [*ids, END]))
            best = [int(id) for id in np.argsort(-log_p)[: width + 1] if id != END]
            longer += [(total + log_p[id], [*ids, id]) for id in best]
        live = sorted(longer, reverse=True)[:width]
    score, ids = max(finished)
    assert list(found.hypotheses[0].ids) == ids
    assert found.hypotheses[0].score == pytest.approx(score, abs=1e-4)
