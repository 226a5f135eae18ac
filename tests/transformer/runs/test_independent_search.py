"""Beams and samples compared with a short search over logits computed from the weights file.

The reference does not use ``transformer``: NumPy in float64, no cache, a pass for every text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from tests.transformer.numpy_forward import NumpyTransformer

pytestmark = pytest.mark.slow
PAD, START, END = 0, 1, 2
SENTENCE = "The cat sat on the mat."
LogP = Callable[[Sequence[int]], np.ndarray]


def log_probabilities(folder: Path, source: list[int] | None, prompt: list[int]) -> LogP:
    """Return log p of the next token after the generated tokens."""
    by_hand = NumpyTransformer(folder)

    def of(written: Sequence[int]) -> np.ndarray:
        seen = by_hand.forward(source, [*prompt, *written])
        logits = seen["decoder.final_norm.output"][-1] @ by_hand.weights["decoder.vocabulary_projection.weight"].T
        logits[[PAD, START]] = -np.inf
        return logits - np.logaddexp.reduce(logits)

    return of


def beam(log_p: LogP, *, width: int, exponent: float, limit: int) -> list[tuple[tuple[int, ...], float]]:
    """Return texts and scores, the best first."""
    live: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    done: list[tuple[tuple[int, ...], float]] = []
    for length in range(1, limit + 1):
        penalty, best_at_last = ((5 + length) / 6) ** exponent, ((5 + limit) / 6) ** exponent
        longer = []
        for text, total in live:
            following = log_p(text)
            done.append(((*text, END), (total + following[END]) / penalty))
            longer += [((*text, id), total + p) for id, p in enumerate(following) if id != END]
        live = sorted(longer, key=lambda one: -one[1])[:width]
        if max(score for _, score in done) >= live[0][1] / best_at_last:
            break
    return sorted(done, key=lambda one: -one[1])[:width]


def sample(log_p: LogP, *, temperature: float, top_k: int, top_p: float, seed: int, limit: int) -> list[int]:
    generator, written = torch.Generator().manual_seed(seed), []
    while len(written) < limit and END not in written:
        scores = log_p(written) / temperature
        order = np.argsort(-scores, kind="stable")
        kept = order[:top_k] if top_k else order
        chances = np.exp(scores[kept] - np.logaddexp.reduce(scores[kept]))
        kept = kept[np.cumsum(chances) - chances < top_p]
        share = np.zeros(len(scores))
        share[kept] = np.exp(scores[kept] - np.logaddexp.reduce(scores[kept]))
        written.append(int(torch.multinomial(torch.tensor(share, dtype=torch.float32), 1, generator=generator)))
    return written


@pytest.fixture(params=["translator", "gpt"])
def case(
    request: pytest.FixtureRequest, tiny_checkpoint: Callable, checkpoints_folder: Path
) -> tuple[transformer.Checkpoint, LogP, int]:
    """Return a checkpoint, its log probabilities computed by hand, and how many tokens it can generate."""
    checkpoint = tiny_checkpoint(request.param)
    ids = list(checkpoint.tokenizer.encode(SENTENCE))
    source, prompt = ([*ids, END], [START]) if request.param == "translator" else (None, [START, *ids])
    log_p = log_probabilities(checkpoints_folder / f"tiny-{request.param}", source, prompt)
    return checkpoint, log_p, checkpoint.config.max_length - len(prompt)


@pytest.mark.parametrize(
    ("width", "exponent"),
    [(3, 0.6), (3, 2.0), *(pytest.param(*more, marks=pytest.mark.nightly) for more in ((1, 0.6), (4, 0.0)))],
)
def test_beams_are_those_of_an_independent_search(case: tuple, width: int, exponent: float) -> None:
    checkpoint, log_p, room = case
    wanted = beam(log_p, width=width, exponent=exponent, limit=room)
    strategy = transformer.Beam(width=width, length_penalty=exponent, max_new_tokens=10_000)
    found = transformer.decode(checkpoint, SENTENCE, strategy)
    assert [tuple(one.ids) for one in found.hypotheses] == [text for text, _ in wanted]
    assert [one.score for one in found.hypotheses] == pytest.approx([score for _, score in wanted], abs=1e-4)


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [
        (0.5, 0, 0.9),
        (1.7, 12, 1.0),
        pytest.param(1.0, 0, 1.0, marks=pytest.mark.nightly),
        pytest.param(1.0, 20, 0.5, marks=pytest.mark.nightly),
    ],
)
def test_samples_are_those_of_an_independent_draw(case: tuple, temperature: float, top_k: int, top_p: float) -> None:
    checkpoint, log_p, room = case
    lengths = []
    for seed in range(3):
        how = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
        wanted = sample(log_p, **how, limit=room)
        found = transformer.decode(checkpoint, SENTENCE, transformer.Sample(**how, max_new_tokens=10_000))
        assert list(found.tokens.ids) == wanted
        lengths.append(len(wanted))
    assert max(lengths) > 10
