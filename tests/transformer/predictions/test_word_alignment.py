"""Word alignment: means over the tokens of a target word, sums over those of a source word."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import transformer
from transformer.predictions.word_alignment import align, word_alignment


@pytest.fixture(scope="module")
def trace(tiny_checkpoint: Callable) -> transformer.Trace:
    translator = tiny_checkpoint("translator")
    return transformer.trace(translator, "An unbelievable umbrella.", "Le parapluie rouge dort.", source_pads=2)


@pytest.mark.parametrize("when", ["written", "read"])
@pytest.mark.parametrize("head", [0, 1, None])
def test_weights_of_words_are_those_of_a_plain_loop(trace: transformer.Trace, when: str, head: int | None) -> None:
    found, weights = align(trace, layer=1, head=head, when=when), trace.attention("decoder", 1, "cross").weights
    weights = weights.mean(axis=0) if head is None else weights[head]
    rows, n_source = trace.prediction if when == "written" else trace.target, len(trace.source) - 2
    for words, tokens, count in ((found.target, rows, len(rows)), (found.source, trace.source, n_source)):
        assert [place for word in words for place in range(word.start, word.end)] == [*range(count)], "no padding"
        for word in words:
            assert word.text == "".join(tokens.displays[word.start : word.end]).strip("·")
    assert len(found.source) < n_source and len(found.target) < len(rows), "else there would be nothing to sum"
    for i, target in enumerate(found.target):
        for j, source in enumerate(found.source):
            cells = weights[target.start : target.end, source.start : source.end]
            assert found.weights[i, j] == pytest.approx(cells.sum() / (target.end - target.start), abs=1e-6)
    assert found.special.tolist() == [False] * (len(found.source) - 1) + [True]
    best, ends = found.best(specials=False), found.weights[:, :-1]
    assert found.best().tolist() == found.weights.argmax(axis=1).tolist()
    assert best.tolist() == ends.argmax(axis=1).tolist()
    for row, first, second in zip(found.weights, best, found.second(best), strict=True):
        assert first != second and row[second] == np.delete(row, first).max()
    sizes = [word.end - word.start for word in found.target]
    assert sizes[found.longest] == max(sizes)


def test_what_cannot_be_aligned_is_named(trace: transformer.Trace) -> None:
    with pytest.raises(ValueError, match="self-attention; words are aligned by cross-attention only"):
        word_alignment(trace.attention("decoder", 1, "self"))
    with pytest.raises(ValueError, match="head is 2, but .* has heads 0 to 1"):
        align(trace, layer=1, head=2)
    with pytest.raises(ValueError, match=r"written has \d+ tokens, but .* has \d+ rows"):
        word_alignment(trace.attention("decoder", 1, "cross"), written=trace.source)
