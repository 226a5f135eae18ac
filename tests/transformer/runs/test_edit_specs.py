"""Edits as short texts: they round-trip, act like the functions, and invalid ones are refused."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from transformer.runs.edit_specs import EditSpec, edits_from

SENTENCE, TARGET = "The cat sat on the mat.", "Le chat dort."
NAMED = {
    "zero:encoder.0.self.1": lambda model: transformer.ablate_head("encoder", layer=0, head=1),
    "mean:decoder.1.cross.0": lambda model: transformer.mean_ablate_head("decoder", layer=1, kind="cross", head=0),
    "scale:decoder.1.self.0=0.5": lambda model: transformer.scale_head("decoder", layer=1, head=0, factor=0.5),
    "edge:decoder.1.cross.0=2-3": lambda model: transformer.ablate_edge(
        "decoder", layer=1, kind="cross", head=0, query=2, key=3
    ),
    "drop:encoder.1.feed_forward": lambda model: transformer.remove_sublayer("encoder", layer=1, which="feed_forward"),
    "residual:decoder.1.cross": lambda model: transformer.remove_residual(
        model, "decoder", layer=1, which="cross_attention"
    ),
}


@pytest.mark.parametrize("text", NAMED)
def test_a_text_does_what_the_function_does(tiny_checkpoint, text):
    checkpoint = tiny_checkpoint("translator")
    assert str(EditSpec.parse(text)) == text
    plain, found, expected = (
        transformer.trace(checkpoint, SENTENCE, TARGET, edits=edits).values("decoder.logits")
        for edits in ([], edits_from(checkpoint, [text]), [NAMED[text](checkpoint.model)])
    )
    np.testing.assert_array_equal(found, expected)
    assert np.abs(found - plain).max() > 1e-4


@pytest.mark.parametrize(
    "value", ["no_causal", "no_padding", "window 2", "itself", "keys 1,2", "allow 0-2,1-3", "block 2-0"]
)
def test_masks_in_all_layers(tiny_checkpoint, value):
    checkpoint = tiny_checkpoint("translator")
    text = f"mask:decoder.*.self={value}"
    assert str(EditSpec.parse(text)) == text
    edits = edits_from(checkpoint, [text])
    assert [edit.name for edit in edits] == [f"decoder.layers.{layer}.self_attention.allowed" for layer in (0, 1)]
    allowed = transformer.trace(checkpoint, SENTENCE, TARGET, edits=edits).attention("decoder", 1).allowed
    assert (allowed == np.tril(np.ones_like(allowed))).all() == (value == "no_padding")  # no pads: nothing to unmask


def test_a_patch_takes_what_the_head_says_in_the_other_sentence(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    name = "encoder.layers.0.self_attention.context"
    text = "patch:encoder.0.self.1=I know: it is = 3.\nYes."
    assert str(EditSpec.parse(text)) == text
    other = transformer.trace(checkpoint, EditSpec.parse(text).value).values(name)[1]
    found = transformer.trace(checkpoint, SENTENCE, TARGET, edits=edits_from(checkpoint, [text])).values(name)[1]
    shared = min(len(other), len(found))
    np.testing.assert_array_equal(found[:shared], other[:shared])
    own = edits_from(checkpoint, [f"patch:encoder.0.self.1={SENTENCE}"])
    plain, patched = (
        transformer.trace(checkpoint, SENTENCE, TARGET, edits=e).values("decoder.logits") for e in ((), own)
    )
    np.testing.assert_array_equal(plain, patched)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "'hello' is not an edit; write e.g. zero:encoder.0.self.3"),
        ("burn:encoder.0.self.3", "is not an edit"),
        ("zero:encoder.0.self", "zero needs a head of self or cross, e.g. zero:encoder.0.self.3"),
        ("zero:encoder.0.feed_forward.1", "needs a head of self or cross"),
        ("drop:encoder.0.self.1", "drop needs no head"),
        ("zero:encoder.*.self.1", "does not fit; write it like zero:encoder.0.self.3"),
        ("scale:encoder.0.self.1", "write it like scale:encoder.0.self.3=0.5"),
        ("zero:encoder.7.self.1", "there is no layer 7; the encoder has layers 0 to 1"),
        ("zero:encoder.0.self.9", "there is no head 9; this model has heads 0 to 1"),
        ("drop:encoder.0.cross", "the encoder of this model has no cross-attention"),
        ("scale:encoder.0.self.1=much", "'much' is not a number"),
        ("edge:encoder.0.self.1=2-3,4-5", "should name query-key"),
        ("mask:encoder.0.self=upside_down", "there is no mask 'upside_down'"),
        ("mask:encoder.0.self=window x", "there is no mask 'window x'"),
        ("mask:encoder.0.self=allow 3", "should name query-key"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(tiny_checkpoint, text, message):
    with pytest.raises(ValueError) as found:
        edits_from(tiny_checkpoint("translator"), [text])
    assert message in str(found.value)


def test_a_model_without_an_encoder_says_so(tiny_checkpoint):
    with pytest.raises(ValueError, match="this model has no encoder"):
        edits_from(tiny_checkpoint("gpt"), ["zero:encoder.0.self.0"])
