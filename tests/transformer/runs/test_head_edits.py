"""Edits of heads and sub-layers equal a computation without the part, and known outputs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer
from tests.transformer.copying import COPYING, copying_checkpoint
from transformer import Greedy, ablate_head, decode, mean_ablate_head, patch_head, scale_head, trace
from transformer.probes import recorded_so_far
from transformer.runs.edits import remove_residual, remove_sublayer

SENTENCE, TARGET = "The cat sat on the mat.", "Le chat dort."


@pytest.fixture(scope="module")
def copying(tiny_tokenizer):
    return copying_checkpoint(tiny_tokenizer)


@pytest.fixture
def checkpoint(tiny_checkpoint):
    return tiny_checkpoint("translator")


def written(checkpoint, edits=()):
    prompt = checkpoint.tokenizer.encode("a b")
    assert len(prompt) == 2
    return decode(checkpoint, "a b", Greedy(6), edits=edits).tokens.ids, tuple(prompt)


def test_the_model_built_by_hand_copies(copying):
    ids, (a, b) = written(copying)
    assert ids == (a, b) * 3


def test_removing_the_only_head_that_carries_the_answer_destroys_it(copying):
    ids, prompt = written(copying, [ablate_head("decoder", layer=0, head=COPYING)])
    assert not set(ids) & set(prompt)
    mean, _ = written(copying, [mean_ablate_head("decoder", layer=0, head=COPYING, mean=np.zeros(32))])
    assert mean == ids  # a mean of zeros is zero ablation


@pytest.mark.parametrize("head", [head for head in range(3) if head != COPYING])
def test_removing_a_head_that_writes_nothing_changes_nothing(copying, head):
    plain = trace(copying, "a b", "a b a").values("decoder.logits")
    for edit in (ablate_head, mean_ablate_head):
        edited = trace(copying, "a b", "a b a", edits=[edit("decoder", layer=0, head=head)])
        np.testing.assert_allclose(edited.values("decoder.logits"), plain, atol=1e-4)


def test_one_cut_edge_loses_one_token(copying):
    plain = trace(copying, "a b", "a b a").values("decoder.logits").argmax(axis=-1)
    cut = transformer.ablate_edge("decoder", layer=0, head=COPYING, query=3, key=2)
    edited = trace(copying, "a b", "a b a", edits=[cut]).values("decoder.logits").argmax(axis=-1)
    assert np.flatnonzero(edited != plain).tolist() == [3]


def test_a_head_of_another_run_brings_the_other_runs_answer(copying):
    other = trace(copying, "c d", "c d c")
    context = other.values("decoder.layers.0.self_attention.context")[COPYING]
    edit = patch_head("decoder", layer=0, head=COPYING, context=context)
    patched = trace(copying, "a b", "a b a", edits=[edit]).values("decoder.logits").argmax(axis=-1)
    assert patched.tolist() == other.values("decoder.logits").argmax(axis=-1).tolist()


@pytest.mark.parametrize(("stack", "kind"), [("encoder", "self"), ("decoder", "self"), ("decoder", "cross")])
def test_patching_a_head_into_its_own_run_changes_nothing(checkpoint, stack, kind):
    plain = trace(checkpoint, SENTENCE, TARGET)
    context = plain.values(f"{stack}.layers.1.{kind}_attention.context")[1]
    edit = patch_head(stack, layer=1, kind=kind, head=1, context=context)
    edited = trace(checkpoint, SENTENCE, TARGET, edits=[edit])
    np.testing.assert_array_equal(edited.values("decoder.logits"), plain.values("decoder.logits"))


def test_a_shorter_run_patches_only_its_own_positions(checkpoint):
    plain = trace(checkpoint, SENTENCE, TARGET)
    name = "encoder.layers.0.self_attention.context"
    short = trace(checkpoint, "I know.", TARGET).values(name)[1]
    assert len(short) < len(plain.source)
    edited = trace(checkpoint, SENTENCE, TARGET, edits=[patch_head("encoder", layer=0, head=1, context=short)])
    np.testing.assert_array_equal(edited.values(name)[1, : len(short)], short)
    np.testing.assert_array_equal(edited.values(name)[1, len(short) :], plain.values(name)[1, len(short) :])
    np.testing.assert_array_equal(edited.values(name)[0], plain.values(name)[0])


def test_scaling(checkpoint):
    plain = trace(checkpoint, SENTENCE, TARGET)

    def logits(factor):
        edit = scale_head("decoder", layer=0, kind="cross", head=1, factor=factor)
        return trace(checkpoint, SENTENCE, TARGET, edits=[edit]).values("decoder.logits")

    np.testing.assert_array_equal(logits(1.0), plain.values("decoder.logits"))
    removed = trace(checkpoint, SENTENCE, TARGET, edits=[ablate_head("decoder", layer=0, kind="cross", head=1)])
    np.testing.assert_array_equal(logits(0.0), removed.values("decoder.logits"))
    assert np.abs(logits(2.0) - plain.values("decoder.logits")).max() > 1e-3


def test_the_mean_of_the_encoder_is_over_all_positions_of_the_decoder_over_those_so_far(checkpoint):
    plain = trace(checkpoint, SENTENCE, TARGET)
    for stack in ("encoder", "decoder"):
        name = f"{stack}.layers.0.self_attention.context"
        own = plain.values(name)[0].astype(np.float64)
        edited = trace(checkpoint, SENTENCE, TARGET, edits=[mean_ablate_head(stack, layer=0, head=0)]).values(name)
        sofar = own.cumsum(axis=0) / np.arange(1, len(own) + 1)[:, None]
        expected = np.broadcast_to(own.mean(axis=0), own.shape) if stack == "encoder" else sofar
        np.testing.assert_allclose(edited[0], expected, atol=1e-6)
        np.testing.assert_array_equal(edited[1], plain.values(name)[1])


@pytest.mark.parametrize("name", ["translator", "bert"])  # pre-norm, post-norm
@pytest.mark.parametrize("which", ["self_attention", "feed_forward"])
@pytest.mark.parametrize("what", ["sublayer", "residual"])
def test_without_a_part_equals_computing_without_it_by_hand(tiny_checkpoint, name, which, what):
    checkpoint = tiny_checkpoint(name)
    target = TARGET if name == "translator" else None
    removed, kept = (1, which), ("sublayer", "residual")
    if what == "sublayer":
        edit = remove_sublayer("encoder", layer=1, which=which)
    else:
        edit = remove_residual(checkpoint.model, "encoder", layer=1, which=which)
    found = trace(checkpoint, SENTENCE, target, edits=[edit])
    encoder, pre_norm = checkpoint.model.encoder, checkpoint.config.norm == "pre"
    with torch.inference_mode():
        ids = torch.tensor([found.source.ids])
        stream = encoder.embedding(ids)
        allowed = torch.ones(1, ids.shape[1], ids.shape[1], dtype=torch.bool)
        for index, layer in enumerate(encoder.layers):
            attend = lambda x, layer=layer: layer.self_attention(x, x, allowed)  # noqa: E731
            for part, sublayer in (("self_attention", attend), ("feed_forward", layer.feed_forward)):
                norm = getattr(layer, f"{part}_norm")
                said = sublayer(norm(stream) if pre_norm else stream)
                if (index, part) != removed:
                    stream = stream + said
                elif what == kept[1]:
                    stream = said
                stream = stream if pre_norm else norm(stream)
    np.testing.assert_allclose(found.values("encoder.layers.1.residual.out"), stream[0].numpy(), atol=1e-5)


def test_the_decoder_without_cross_attention_does_not_know_the_source(checkpoint):
    edits = [remove_sublayer("decoder", layer=layer, which="cross_attention") for layer in (0, 1)]
    first, second = (
        trace(checkpoint, sentence, TARGET, edits=edits).values("decoder.logits")
        for sentence in (SENTENCE, "I do not know where he lives.")
    )
    np.testing.assert_array_equal(first, second)


def test_what_does_not_exist_is_refused_with_a_sentence(checkpoint):
    def edited(*edits):
        return trace(checkpoint, SENTENCE, TARGET, edits=edits)

    for make in (ablate_head, mean_ablate_head):
        with pytest.raises(ValueError, match="there is no head 7; this model has heads 0 to 1"):
            edited(make("encoder", layer=0, head=7))
    with pytest.raises(ValueError, match="factor is nan; a head can only be scaled by a finite number"):
        scale_head("encoder", layer=0, head=0, factor=float("nan"))
    with pytest.raises(ValueError, match=r"mean has shape \(3,\); a head of this model has 16 channels"):
        edited(mean_ablate_head("encoder", layer=0, head=0, mean=np.zeros(3)))
    with pytest.raises(ValueError, match=r"context patched in has shape \(2, 3\); this model needs \[query, 16\]"):
        edited(patch_head("encoder", layer=0, head=0, context=np.zeros((2, 3))))
    with pytest.raises(ValueError, match="which is 'attention'; choose one of self_attention"):
        remove_sublayer("encoder", layer=0, which="attention")
    with pytest.raises(ValueError, match="there is no activation 'encoder.layers.9"):
        edited(remove_residual(checkpoint.model, "encoder", layer=9, which="feed_forward"))
    with pytest.raises(RuntimeError, match="nothing has been recorded at 'x'"):
        recorded_so_far("x")
