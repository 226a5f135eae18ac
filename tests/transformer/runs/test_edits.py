"""Edits as functions and as texts: what is refused, what changes nothing, what holds while writing.

Every number under an edit is recomputed in ``tests/transformer/test_numpy_measures.py``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import transformer
from transformer import Greedy, ablate_edge, ablate_head, decode, edits_from, mean_ablate_head, override_mask, patch
from transformer.interventions.experiment import experiment
from transformer.masks import combined_mask
from transformer.probes import recorded_so_far
from transformer.runs.edit_specs import EditSpec
from transformer.runs.mask_choices import MaskChoices, presets
from transformer.runs.mask_edits import mask_edit

SENTENCE, TARGET = "The cat sat on the mat.", "Le chat dort."
CONTEXT = "encoder.layers.0.self_attention.context"


@pytest.fixture
def traced(tiny_checkpoint: Callable) -> Callable[..., transformer.Trace]:
    """Return a trace of the translator under edits, given as texts or as they are."""

    def make(*edits: object, sentence: str = SENTENCE) -> transformer.Trace:
        checkpoint = tiny_checkpoint("translator")
        parsed = [
            one for edit in edits for one in (edits_from(checkpoint, [edit]) if isinstance(edit, str) else [edit])
        ]
        return transformer.trace(checkpoint, sentence, TARGET, edits=parsed)

    return make


@pytest.mark.parametrize(
    "text",
    [
        "zero:encoder.0.self.1",
        "scale:decoder.1.self.0=0.5",
        "edge:decoder.1.cross.0=2-3",
        "patch:encoder.0.self.1=I know: it is = 3.\nYes.",
        "drop:encoder.1.feed_forward",
        "steer:decoder.1.residual=-0.5 head 1.cross.3 of The cat = 3.\nYes.",
        "steer:decoder.1.residual=2 random 17 like word Paris",
        "mask:decoder.*.self=window 2",
        "mask:decoder.0.cross=allow 0-2,1-3",
    ],
)
def test_a_text_round_trips(text: str) -> None:
    assert str(EditSpec.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("hello", "'hello' is not an edit"),
        ("burn:encoder.0.self.3", "is not an edit"),
        ("zero:encoder.0.self", "write it like zero"),
        ("zero:encoder.0.feed_forward.1", "write it like zero"),
        ("zero:encoder.*.self.1", "write it like zero"),
        ("drop:encoder.0.self.1", "write it like drop"),
        ("drop:encoder.1.residual", "write it like drop"),
        ("scale:encoder.0.self.1", "write it like scale"),
        ("scale:encoder.0.self.1=much", "write it like scale"),
        ("scale:encoder.0.self.1=nan", "write it like scale"),
        ("edge:encoder.0.self.1=2-3,4-5", "write it like edge"),
        ("mask:encoder.0.self=upside_down", "write it like mask"),
        ("mask:encoder.0.self=window x", "write it like mask"),
        ("mask:encoder.0.self=window 0", "write it like mask"),
        ("mask:encoder.0.self=window 99999999999999999999", "write it like mask"),
        ("mask:encoder.0.self=allow 3", "write it like mask"),
        ("mask:decoder.0.cross=itself", "write it like mask"),
        ("mask:encoder.0.feed_forward=no_causal", "write it like mask"),
        ("steer:encoder.1.self=4 word Paris", "write it like steer"),
        ("steer:encoder.*.residual=4 word Paris", "write it like steer"),
        ("steer:encoder.1.residual", "write it like steer"),
        ("steer:encoder.1.residual=inf word Paris", "'inf word Paris'"),
        ("steer:encoder.1.residual=4 prompts only one", "does not fit"),
        ("steer:encoder.1.residual=4 word Paris", "W_U reads the decoder"),
        ("steer:encoder.1.residual=4 head 0.self.9 of A.", "no head 9"),
        ("steer:encoder.1.residual=4 head 0.cross.1 of A.", "no cross-attention"),
        ("zero:encoder.7.self.1", "no layer 7; the encoder has layers 0 to 1"),
        ("zero:encoder.0.self.9", "no head 9; this model has heads 0 to 1"),
        ("drop:encoder.0.cross", "no cross-attention"),
    ],
)
def test_a_text_that_does_not_fit_is_refused(traced: Callable, text: str, problem: str) -> None:
    with pytest.raises(ValueError) as found:
        traced(text)
    assert problem in str(found.value)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: ablate_head("encoder", layer=0, head=7), "no head 7; this model has heads 0 to 1"),
        (lambda: mean_ablate_head("encoder", layer=0, head=-1), "no head -1"),
        (lambda: mean_ablate_head("encoder", layer=0, head=0, mean=np.zeros(3)), r"\(3,\); .* 16 channels"),
        (lambda: transformer.scale_head("encoder", layer=0, head=0, factor=np.nan), "factor is nan"),
        (lambda: transformer.patch_head("encoder", layer=0, head=0, context=np.zeros((2, 3))), r"\(2, 3\); .* 16\]"),
        (lambda: patch("encoder.final_norm.output", np.zeros((3, 32))), r"\(\d+, 32\) in this run but \(3, 32\)"),
        (lambda: ablate_edge("encoder", layer=0, head=7, query=0, key=0), "no head 7"),
        (lambda: ablate_edge("encoder", layer=0, head=0, query=-1, key=0), "edge -1→0.*count from 0"),
        (lambda: override_mask("decoder", layer=0, allowed=np.ones((1, 3))), r"\(1, 3\) but \d+ queries"),
        (lambda: mask_edit("decoder", layer=0, kind="cross", mask="window 3"), "'window 3' is no mask of cross"),
        (lambda: transformer.remove_sublayer("encoder", layer=0, which="attention"), "which is 'attention'"),
        (lambda: ablate_head("encoder", layer=9, head=0), r"no activation 'encoder\.layers\.9"),
    ],
)
def test_what_does_not_exist_is_refused(traced: Callable, make: Callable, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        traced(make())


def test_a_model_without_a_stack_and_an_edit_outside_of_a_recording_are_refused(tiny_checkpoint: Callable) -> None:
    with pytest.raises(ValueError, match="no encoder"):
        edits_from(tiny_checkpoint("gpt"), ["zero:encoder.0.self.0"])
    with pytest.raises(RuntimeError, match="'x'"):
        recorded_so_far("x")


@pytest.mark.parametrize(
    "make",
    [
        lambda own: f"patch:encoder.0.self.1={SENTENCE}",
        lambda own: "scale:decoder.0.cross.1=1",
        lambda own: "mask:decoder.*.self=window 90",
        lambda own: "steer:decoder.1.residual=0 word a",
        lambda own: patch("decoder.layers.1.feed_forward.hidden", own.values("decoder.layers.1.feed_forward.hidden")),
        lambda own: transformer.patch_head("encoder", layer=0, head=1, context=own.values(CONTEXT)[1]),
    ],
)
def test_what_changes_nothing_changes_no_bit(traced: Callable, make: Callable) -> None:
    own = traced()
    np.testing.assert_array_equal(traced(make(own)).values("decoder.logits"), own.values("decoder.logits"))


def test_a_mean_of_zeros_and_a_factor_of_0_remove_the_head(traced: Callable) -> None:
    removed = traced("zero:encoder.0.self.1").values("decoder.logits")
    for edit in ("scale:encoder.0.self.1=0", mean_ablate_head("encoder", layer=0, head=1, mean=np.zeros(16))):
        np.testing.assert_array_equal(traced(edit).values("decoder.logits"), removed)


def test_a_shorter_run_patches_only_its_own_positions(traced: Callable) -> None:
    own, short = traced().values(CONTEXT)[1], traced(sentence="I know.").values(CONTEXT)[1]
    found = traced(transformer.patch_head("encoder", layer=0, head=1, context=short)).values(CONTEXT)[1]
    np.testing.assert_array_equal(found, np.concatenate((short, own[len(short) :])))


def test_the_last_encoder_state_of_another_sentence_gives_its_logits(traced: Callable) -> None:
    name, other = "encoder.final_norm.output", traced(sentence="The mat sat on the cat.")
    found = traced(patch(name, other.values(name)))
    np.testing.assert_array_equal(found.values("decoder.logits"), other.values("decoder.logits"))


# ---- masks, and edits while a text is generated ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mask", "place", "pads", "rows"),
    [
        ("no_padding", "decoder self", 2, "1000 1100 1110 1111"),
        ("itself", "encoder self", 1, "1000 0100 0010 0000"),
        ("keys 1,9", "encoder self", 0, "1011 1011 1011 1011"),
        ("allow 0-3,9-0", "decoder self", 0, "1001 1100 1110 1111"),
    ],
)
def test_masks_where_positions_are_padding_or_do_not_exist(mask: str, place: str, pads: int, rows: str) -> None:
    stack, kind = place.split()
    keys = torch.tensor([[True] * (4 - pads) + [False] * pads])
    own = combined_mask(keys, len(rows.split()), causal=place == "decoder self")
    found = mask_edit(stack, layer=0, kind=kind, mask=mask).function(own)[0]
    assert [[str(int(cell)) for cell in row] for row in found] == [[*row] for row in rows.split()]


@pytest.mark.parametrize("name", ["translator", "gpt"])
def test_a_mask_holds_while_the_text_is_written_and_in_the_trace(tiny_checkpoint: Callable, name: str) -> None:
    checkpoint = tiny_checkpoint(name)
    edits = edits_from(checkpoint, ["mask:decoder.*.self=window 2"])
    found = transformer.trace(checkpoint, "The cat sat", edits=edits, strategy=Greedy(8))
    view = found.attention("decoder", 1)
    assert (view.allowed == (np.tri(len(view.query)) - np.tri(len(view.query), k=-2)).astype(bool)).all()
    rows = found.values("decoder.logits")[-8:].copy()
    rows[:, :2] = -np.inf
    assert rows.argmax(axis=-1).tolist() == [token.id for token in found.prediction][-8:]


def test_a_given_mask_is_used_row_by_row_while_the_text_is_written(tiny_checkpoint: Callable) -> None:
    checkpoint, allowed = tiny_checkpoint("translator"), np.zeros((96, 40), dtype=bool)
    allowed[:, 1] = True
    edit = override_mask("decoder", layer=0, kind="cross", allowed=allowed)
    weights = transformer.trace(checkpoint, SENTENCE, edits=[edit]).attention("decoder", 0, "cross").weights
    assert (weights[..., 1] == 1).all() and weights.sum() == weights[..., 1].size


def test_an_edge_may_be_ablated_before_it_exists(tiny_checkpoint: Callable) -> None:
    edit = ablate_edge("decoder", layer=0, head=0, query=3, key=1)
    plain, changed = (decode(tiny_checkpoint("translator"), SENTENCE, Greedy(6), edits=e) for e in ((), (edit,)))
    assert changed.tokens.ids[:3] == plain.tokens.ids[:3]
    np.testing.assert_allclose(changed.steps[2].logits, plain.steps[2].logits, atol=1e-5)
    assert np.abs(changed.steps[3].logits[2:] - plain.steps[3].logits[2:]).max() > 1e-4


# ---- the masks that a reader chooses --------------------------------------------------------------------------------

BLANKED = "The old man ___ the sea."
PLACES = [
    ("translator", "encoder", "self", ("own", "no_padding", "window", "itself", "word")),
    ("translator", "decoder", "self", ("own", "no_causal", "window", "itself", "word")),
    ("translator", "decoder", "cross", ("own", "no_padding", "word")),
    ("gpt", "decoder", "self", ("own", "no_causal", "window", "itself", "word")),
    ("sentiment", "encoder", "self", ("own", "no_padding", "window", "itself", "word")),
]


@pytest.mark.parametrize(("name", "stack", "kind", "offered"), PLACES)
def test_every_preset_gives_the_mask_that_its_edits_give(tiny_checkpoint, name, stack, kind, offered):
    checkpoint = tiny_checkpoint(name)
    trace = transformer.trace(checkpoint, BLANKED)
    own = trace.attention(stack, 1, kind)
    assert presets(own) == offered
    for preset in offered:
        choices = MaskChoices(preset, cells={(1, 0): preset == "itself"})
        now = experiment(trace, edits_from(checkpoint, choices.specs(own))).changed.attention(stack, 1, kind)
        without_run = choices.without_run(own, checkpoint)
        assert np.array_equal(without_run.allowed, now.allowed)
        assert not without_run.weights[:, ~now.allowed].any()
        alone = transformer.trace(
            checkpoint,
            BLANKED,
            trace.text if trace.target and trace.source else None,
            edits=edits_from(checkpoint, choices.specs(own)),
        ).attention(stack, 1, kind)
        n_queries = min(len(alone.query), len(own.query))
        assert np.array_equal(now.allowed[:n_queries], alone.allowed[:n_queries, : len(own.key)])
        assert not now.allowed[1, 0] or preset == "itself"


@pytest.mark.parametrize(
    "choices",
    [
        MaskChoices(),
        MaskChoices("window", size=3, everywhere=False),
        MaskChoices("word", word=2, cells={(0, 1): True, (2, 2): False}),
    ],
)
def test_choices_come_out_of_their_texts(choices):
    assert MaskChoices.from_texts(choices.to_texts()) == choices


def test_what_a_map_has_no_place_for_is_left_out(tiny_checkpoint):
    view = transformer.trace(tiny_checkpoint("translator"), BLANKED).attention("decoder", 0, "cross")
    wrong = MaskChoices.from_texts(["no_causal", "allow 999-0,1-0,x", "block 0-999", "unknown 3"])
    assert wrong.fitting(view) == MaskChoices(cells={(1, 0): True})


def test_a_stroke_over_a_painted_cell_counts():
    once = MaskChoices().painted([(0, 0), (0, 1)], allowed=False)
    assert once.painted([(0, 1)], allowed=True).cells == {(0, 0): False, (0, 1): True}
