"""Word alignment for hand-made weights, and for a model's own."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from transformer.predictions.word_alignment import align, word_alignment
from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import Token, TokenSequence


def tokens(*displays: str, name: str = "source") -> TokenSequence:
    return TokenSequence(
        tuple(Token(i, i + 4, d.replace("·", " "), d, d.startswith("<")) for i, d in enumerate(displays)), name
    )


SOURCE = tokens("·The", "·um", "brella", ".", "</s>", "<pad>")
READ = tokens("<s>", "·le", "·para", "pluie", name="target")
WRITTEN = tokens("·le", "·para", "pluie", "</s>", name="prediction")
WEIGHTS = np.array(
    [
        [[0.7, 0.1, 0.1, 0.05, 0.05, 0], [0.1, 0.4, 0.4, 0.1, 0, 0], [0, 0.1, 0.7, 0, 0.2, 0], [0, 0, 0, 0.2, 0.8, 0]],
        [[0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 1, 0], [0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0]],
    ]
)  # fmt: skip


def view(**changed) -> AttentionView:
    allowed = np.array([[True] * 5 + [False]] * 4)
    values = {"name": "decoder.layers.0.cross_attention", "stack": "decoder", "layer": 0, "kind": "cross"}
    values |= {"weights": WEIGHTS, "allowed": allowed, "scores": WEIGHTS, "query": READ, "key": SOURCE}
    return AttentionView(**{**values, **changed})


def test_pieces_are_summed_where_looked_at_and_averaged_where_looking() -> None:
    found = word_alignment(view(), written=WRITTEN, head=0)
    assert [word.text for word in found.target] == ["le", "parapluie", "</s>"]
    assert [word.text for word in found.source] == ["The", "umbrella", ".", "</s>"], "padding is nobody's word"
    expected = [[0.7, 0.2, 0.05, 0.05], [0.05, 0.8, 0.05, 0.1], [0, 0, 0.2, 0.8]]
    np.testing.assert_allclose(found.weights, expected, atol=1e-12)
    assert found.best().tolist() == [0, 1, 3]
    assert found.best(specials=False).tolist() == [0, 1, 2]
    assert found.special.tolist() == [False, False, False, True]


def test_named_by_the_token_that_was_read_it_moves_by_one_row() -> None:
    found = word_alignment(view(), head=0)
    assert [word.text for word in found.target] == ["<s>", "le", "parapluie"]
    np.testing.assert_allclose(found.weights[0], [0.7, 0.2, 0.05, 0.05], atol=1e-12)
    np.testing.assert_allclose(found.weights[2], [0, 0.4, 0.1, 0.5], atol=1e-12)


def test_the_mean_of_all_heads() -> None:
    both = [word_alignment(view(), written=WRITTEN, head=head).weights for head in (0, 1)]
    np.testing.assert_allclose(word_alignment(view(), written=WRITTEN).weights, np.mean(both, axis=0), atol=1e-12)


def test_entropy() -> None:
    found = word_alignment(view(), written=WRITTEN, head=1)
    np.testing.assert_allclose(found.entropy, [0, 1, 0], atol=1e-12)


@pytest.mark.parametrize("when", ("written", "read"))
@pytest.mark.parametrize("head", (None, 1))
def test_rows_of_a_real_trace_sum_to_1(tiny_checkpoint, when: str, head: int | None) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), "Do you want my umbrella?", source_pads=3)
    found = align(trace, layer=1, head=head, when=when)
    assert found.weights.shape == (len(found.target), len(found.source))
    assert len(found.source) < len(trace.source) - 3, "words have several pieces"
    np.testing.assert_allclose(found.weights.sum(axis=1), 1, atol=1e-5)
    covered = [index for word in found.target for index in range(word.start, word.end)]
    assert covered == list(range(len(trace.target))), "every row belongs to exactly one word"


def test_what_cannot_be_aligned_is_named() -> None:
    with pytest.raises(ValueError, match="self-attention; words are aligned by cross-attention only"):
        word_alignment(view(kind="self"))
    with pytest.raises(ValueError, match="head is 2, but decoder.layers.0.cross_attention has heads 0 to 1"):
        word_alignment(view(), head=2)
    with pytest.raises(ValueError, match="written has 6 tokens, but .* has 4 rows"):
        word_alignment(view(), written=SOURCE)


def test_the_second_word_has_the_largest_weight_of_the_others(tiny_checkpoint) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), "The old man told us.", target="Le vieil homme dort.")
    found = align(trace, layer=0)
    best = found.best(specials=False)
    assert not found.special[best].any()
    for row, first, second in zip(found.weights, best, found.second(best), strict=True):
        assert first != second and row[second] == np.delete(row, first).max()
    sizes = [word.end - word.start for word in found.target]
    assert sizes[found.longest] == max(sizes)
