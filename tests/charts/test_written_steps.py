"""The payload of a generated text: exact probabilities, rounded weights, labels, and rejected input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from charts.canvas.figure import CanvasFigure
from charts.canvas.written_steps import StepBars, written_steps
from charts.toolkit.payload_bytes import unpack
from tests.figures import sequence
from transformer.text.tokens import TokenSequence


def bars(n_keys: int, *, seed: int = 0, count: int = 10) -> StepBars:
    random = np.random.default_rng(seed)
    shares = np.sort(random.dirichlet(np.ones(count + 1)).astype(np.float32))[::-1]
    weights = random.dirichlet(np.ones(n_keys)).astype(np.float32)
    return StepBars(
        said=("After x comes ", f"·w{seed}", "."),
        candidates=tuple(f"·c{place}" for place in range(count)),
        probabilities=tuple(map(float, shares[:count])),
        rest=float(shares[count]),
        chosen=seed % count,
        weights=weights,
        allowed=np.arange(n_keys) < n_keys - 1,
    )


def drawn(steps: list[StepBars], tokens: TokenSequence, key: TokenSequence, **more: object) -> CanvasFigure:
    return written_steps(steps, tokens=tokens, key=key, of="layer 0, head 1", **more)


def test_probabilities_are_exact_and_weights_off_by_half_a_step_at_most(target: TokenSequence) -> None:
    steps = [bars(row + 1, seed=row, count=10 - row) for row in range(len(target))]
    metadata, arrays = unpack(drawn(steps, target, target, before=target[:1], n_given=2, begin=(3, 4)).packed())
    for row, step in enumerate(steps):
        count = len(step.candidates)
        assert (arrays["probabilities"][row, :count] == np.float32(step.probabilities)).all()
        assert arrays["rest"][row] == np.float32(step.rest)
        assert np.abs(arrays["weights"][row, : row + 1] / 65535 - step.weights).max() <= 0.5 / 65535 + 1e-9
    allowed = np.unpackbits(arrays["allowed"], bitorder="little")[:25].reshape(5, 5)
    assert (allowed == np.tri(5, k=-1)).all(), "neither what is masked nor what is not there yet"
    assert metadata["counts"] == [1, 2, 3, 4, 5] and metadata["chosen"] == [0, 1, 2, 3, 4]
    assert metadata["candidates"][4] == [f"·c{place}" for place in range(6)]
    assert metadata["columns"] == list(target.labels) and metadata["begin"] == [3, 4]
    assert [token["given"] for token in metadata["tokens"]] == [True, True, False, False, False]
    assert metadata["tokens"][3] == {"text": "·<i>", "special": False, "given": False}
    assert metadata["before"] == [{"text": "<s>", "special": True}]


def test_a_rank_is_drawn_only_behind_a_gap(target: TokenSequence) -> None:
    steps = [replace(bars(5, seed=row), chosen=3, rank=rank) for row, rank in enumerate((0, 4, 5, 13, 3))]
    metadata, _ = unpack(drawn(steps, target, target).packed())
    assert metadata["ranks"] == [0, 0, 5, 13, 0]


def test_a_sentence_takes_at_most_30_kb() -> None:
    words = sequence([f"·word{place}" for place in range(24)])
    assert len(drawn([bars(24, seed=row) for row in range(24)], words, words).packed()) < 30_000


def test_a_page_of_it_works_without_a_server(target: TokenSequence) -> None:
    page = drawn([bars(5, seed=row) for row in range(5)], target, target).html()
    assert "<title>The text being written, step by step</title>" in page and "<i>" not in page


@pytest.mark.parametrize(
    "change, says",
    [
        ({"probabilities": (2.0,) + (0.0,) * 9}, "within 0…1"),
        ({"rest": float("nan")}, "within 0…1"),
        ({"weights": np.array([-0.5, 1, 0, 0, 0])}, "within 0…1"),
        ({"chosen": 10}, "candidate 10"),
        ({"probabilities": (0.5,)}, "10 candidates, but 1"),
        ({"weights": np.zeros(6), "allowed": np.ones(6)}, "5 keys"),
    ],
)
def test_what_does_not_fit_is_refused(target: TokenSequence, change: dict, says: str) -> None:
    steps = [bars(5, seed=row) for row in range(5)]
    with pytest.raises(ValueError, match=says):
        drawn([replace(steps[0], **change), *steps[1:]], target, target)
    with pytest.raises(ValueError, match="4 steps and 5 tokens"):
        drawn(steps[1:], target, target)
