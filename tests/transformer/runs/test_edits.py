"""Effects of the predefined edits, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from transformer import (
    Checkpoint,
    Greedy,
    InputError,
    Trace,
    ablate_edge,
    ablate_head,
    decode,
    override_mask,
    patch,
    trace,
)

SENTENCE, TARGET = "The cat sat on the mat.", "Le chat dort."
CROSS = "decoder.layers.0.cross_attention"
Tiny = Callable[[str], Checkpoint]


@pytest.fixture
def checkpoint(tiny_checkpoint: Tiny) -> Checkpoint:
    return tiny_checkpoint("translator")


@pytest.fixture
def plain(checkpoint: Checkpoint) -> Trace:
    return trace(checkpoint, SENTENCE, TARGET)


def edited(checkpoint: Checkpoint, *edits: object, sentence: str = SENTENCE) -> Trace:
    return trace(checkpoint, sentence, TARGET, edits=edits)


def test_ablating_a_head_removes_exactly_its_part_of_the_output(checkpoint: Checkpoint, plain: Trace) -> None:
    result = edited(checkpoint, ablate_head("decoder", layer=0, kind="cross", head=1))
    context = plain.values(f"{CROSS}.context")
    np.testing.assert_array_equal(result.values(f"{CROSS}.context")[0], context[0])
    assert (result.values(f"{CROSS}.context")[1] == 0).all()
    matrix = checkpoint.model.decoder.layers[0].cross_attention.output_projection.weight.detach().numpy()
    d_head = checkpoint.config.d_head
    share = context[1] @ matrix[:, d_head : 2 * d_head].T
    np.testing.assert_allclose(result.values(f"{CROSS}.output") + share, plain.values(f"{CROSS}.output"), atol=1e-5)


def test_ablating_all_heads_leaves_the_bias_alone(checkpoint: Checkpoint) -> None:
    result = edited(checkpoint, *(ablate_head("encoder", layer=1, head=head) for head in (0, 1)))
    bias = checkpoint.model.encoder.layers[1].self_attention.output_projection.bias.detach().numpy()
    output = result.values("encoder.layers.1.self_attention.output")
    np.testing.assert_allclose(output, np.broadcast_to(bias, output.shape), atol=1e-7)


def test_ablating_an_edge_zeroes_one_weight_and_no_other(checkpoint: Checkpoint, plain: Trace) -> None:
    result = edited(checkpoint, ablate_edge("decoder", layer=0, kind="cross", head=1, query=2, key=3))
    before, after = plain.values(f"{CROSS}.weights"), result.values(f"{CROSS}.weights")
    assert np.argwhere(before != after).tolist() == [[1, 2, 3]]
    assert after[1, 2, 3] == 0
    assert after[1, 2].sum() == pytest.approx(1 - before[1, 2, 3], abs=1e-6)


def test_an_edge_may_be_ablated_before_it_exists(checkpoint: Checkpoint) -> None:
    edit = ablate_edge("decoder", layer=0, head=0, query=3, key=1)
    plain, changed = (decode(checkpoint, SENTENCE, Greedy(6), edits=edits) for edits in ((), (edit,)))
    assert changed.tokens.ids[:3] == plain.tokens.ids[:3]
    np.testing.assert_allclose(changed.steps[2].logits, plain.steps[2].logits, atol=1e-5)
    assert np.abs(changed.steps[3].logits[2:] - plain.steps[3].logits[2:]).max() > 1e-4


def test_a_mask_that_allows_everything_lets_the_decoder_look_ahead(checkpoint: Checkpoint, plain: Trace) -> None:
    n = len(plain.target)
    result = edited(checkpoint, override_mask("decoder", layer=0, allowed=np.ones((n, n), dtype=bool)))
    view = result.attention("decoder", 0)
    assert view.allowed.all()
    assert (view.weights > 0).all()
    assert not result.attention("decoder", 1).allowed.all(), "the other layer keeps its mask"
    scores = view.scores
    expected = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(view.weights, expected, atol=1e-6)


def test_a_mask_that_forbids_everything_gives_zeros(checkpoint: Checkpoint, plain: Trace) -> None:
    shape = len(plain.target), len(plain.source)
    result = edited(checkpoint, override_mask("decoder", layer=1, kind="cross", allowed=np.zeros(shape, dtype=bool)))
    assert (result.attention("decoder", 1, "cross").weights == 0).all()
    assert all(np.isfinite(result.values(name)).all() for name in result.names())


def test_a_mask_is_used_row_by_row_while_the_text_is_written(checkpoint: Checkpoint, plain: Trace) -> None:
    allowed = np.zeros((96, len(plain.source)), dtype=bool)
    allowed[:, 1] = True
    result = trace(checkpoint, SENTENCE, edits=[override_mask("decoder", layer=0, kind="cross", allowed=allowed)])
    weights = result.values(f"{CROSS}.weights")
    assert (weights[..., 1] == 1).all()
    assert weights.sum() == 2 * len(result.target)


def test_a_mask_that_is_too_small_is_refused_with_both_shapes(checkpoint: Checkpoint) -> None:
    mask = override_mask("decoder", layer=0, kind="cross", allowed=np.ones((2, 3), dtype=bool))
    with pytest.raises(ValueError, match=r"decoder cross-attention is \(2, 3\) but \d+ queries look at \d+ keys"):
        edited(checkpoint, mask)


def test_patching_in_the_same_run_changes_nothing(checkpoint: Checkpoint, plain: Trace) -> None:
    for name in ("encoder.layers.0.residual.out", f"{CROSS}.weights", "decoder.layers.1.feed_forward.hidden"):
        result = edited(checkpoint, patch(name, plain.values(name)))
        np.testing.assert_array_equal(result.values("decoder.logits"), plain.values("decoder.logits"))


def test_patching_in_the_last_encoder_state_gives_the_other_sentences_logits(checkpoint: Checkpoint) -> None:
    sentences = "It is raining.", "I love reading."
    n_first, n_second = (len(checkpoint.tokenizer.encode(sentence)) for sentence in sentences)
    other = "I love" + " I" * n_first  # chosen to have the same number of tokens as the first sentence
    while len(checkpoint.tokenizer.encode(other)) > n_first:
        other = other[:-2]
    assert len(checkpoint.tokenizer.encode(other)) == n_first != n_second
    source, foreign = (edited(checkpoint, sentence=s) for s in (other, sentences[0]))
    name = "encoder.final_norm.output"
    result = edited(checkpoint, patch(name, source.values(name)), sentence=sentences[0])
    np.testing.assert_array_equal(result.values("decoder.logits"), source.values("decoder.logits"))
    assert not np.array_equal(foreign.values("decoder.logits"), source.values("decoder.logits"))


def test_a_patch_of_another_length_is_refused_with_both_shapes(checkpoint: Checkpoint, plain: Trace) -> None:
    name = "encoder.final_norm.output"
    with pytest.raises(ValueError, match=rf"{name} has shape \(\d+, 32\) in this run but \({len(plain.source)}, 32\)"):
        edited(checkpoint, patch(name, plain.values(name)), sentence="It is raining, so take your umbrella.")


@pytest.mark.parametrize("head", [2, -1])
def test_a_head_that_does_not_exist_is_refused(head: int, checkpoint: Checkpoint) -> None:
    message = f"there is no head {head}; this model has heads 0 to 1"
    with pytest.raises(ValueError, match=message):
        edited(checkpoint, ablate_head("encoder", layer=0, head=head))
    with pytest.raises(ValueError, match=message):
        edited(checkpoint, ablate_edge("encoder", layer=0, head=head, query=0, key=0))


@pytest.mark.parametrize(("query", "key"), [(-1, 0), (0, -2)])
def test_an_edge_with_a_negative_index_is_refused(query: int, key: int) -> None:
    with pytest.raises(ValueError, match=rf"edge {query}→{key}.*count from 0"):
        ablate_edge("encoder", layer=0, head=0, query=query, key=key)


def test_descriptions_say_what_was_done() -> None:
    assert ablate_head("decoder", layer=1, kind="cross", head=3).description == (
        "decoder cross-attention, layer 1: no head 3"
    )
    assert "no edge 2→5" in ablate_edge("encoder", layer=0, head=1, query=2, key=5).description
    assert "another mask" in override_mask("encoder", layer=0, allowed=np.ones((1, 1))).description
    assert "encoder.logits" in patch("encoder.logits", np.zeros(1)).description


def test_an_input_error_is_a_value_error() -> None:
    assert issubclass(InputError, ValueError)
