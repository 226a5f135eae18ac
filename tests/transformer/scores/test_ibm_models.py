"""EM finds the words of a tiny corpus, never lowers the likelihood, and model 2 learns word order."""

from __future__ import annotations

import numpy as np
import pytest

from transformer.scores.ibm_models import IBMModel

BOOKS = [
    (["the", "house"], ["das", "haus"]),
    (["the", "book"], ["das", "buch"]),
    (["a", "book"], ["ein", "buch"]),
]


@pytest.mark.parametrize("second", [False, True])
def test_the_textbook_corpus_is_aligned(second: bool) -> None:
    model = IBMModel(BOOKS, rounds=20, second=second)
    assert [model.links(*pair) for pair in BOOKS] == [[0, 1]] * 3
    assert (np.diff(model.log_likelihoods) >= -1e-9).all()
    assert model.links(["the", "car"], ["das", "auto"])[1] == -1  # an unknown word has no link


def test_a_round_is_that_of_a_plain_loop() -> None:
    model = IBMModel(BOOKS, rounds=1)
    counts: dict[tuple[str, str], float] = {}
    for source, target in BOOKS:
        for f in target:
            for e in ("", *source):  # at first every link of a word counts equally
                counts[e, f] = counts.get((e, f), 0) + 1 / (1 + len(source))
    total = {e: sum(count for (word, _), count in counts.items() if word == e) for e, _ in counts}
    for (e, f), count in counts.items():
        found = model._probability(model._source.get(e, 0), model._target[f], (0, 2, 0, 2)) * 3
        assert found == pytest.approx(count / total[e])


def test_order_helps_where_words_do_not() -> None:
    rng = np.random.default_rng(0)
    pairs = []
    for _ in range(60):
        numbers = rng.integers(0, 4, size=4)  # words repeat, so that only their order identifies them
        pairs.append(([f"e{n}" for n in numbers], [f"f{n}" for n in numbers]))
    second = IBMModel(pairs, rounds=8, second=True)
    assert all(second.links(*pair) == [0, 1, 2, 3] for pair in pairs)
    first = IBMModel(pairs, rounds=8)
    assert not all(first.links(*pair) == [0, 1, 2, 3] for pair in pairs)
