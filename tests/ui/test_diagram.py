"""The blocks of the diagram follow the forward pass and have this trace's shapes."""

from __future__ import annotations

import pytest

import transformer
from tests.conftest import ROOT
from tests.foreign_checkpoints import foreign_checkpoint
from ui.words.texts import pictures
from views.overview.diagram import diagram_data, model_stacks

SENTENCE = "The cat <b>sat</b> on the mat."


def stacks_of(checkpoint: transformer.Checkpoint, *, layer: int = 0, **values):
    trace = transformer.trace(checkpoint, SENTENCE, **values)
    return trace, model_stacks(checkpoint.config, trace, layer=layer)


def test_a_pre_norm_translator_from_the_bottom_to_the_top(tiny_checkpoint) -> None:
    _, (encoder, decoder) = stacks_of(tiny_checkpoint("translator"))
    names = [block.id.removeprefix("decoder.") for block in decoder.blocks]
    assert names == [
        "tokens", "embedding", "positions",
        "self_attention_norm", "self_attention", "self_attention_add",
        "cross_attention_norm", "cross_attention", "cross_attention_add",
        "feed_forward_norm", "feed_forward", "feed_forward_add",
        "final_norm", "logits",
    ]  # fmt: skip
    assert "cross_attention" not in " ".join(block.id for block in encoder.blocks)
    assert encoder.output.id == "encoder.final_norm"


def test_a_post_norm_model_normalises_after_each_sum_and_has_no_final_norm(tiny_checkpoint) -> None:
    _, (encoder,) = stacks_of(tiny_checkpoint("bert"))
    names = [block.id.removeprefix("encoder.") for block in encoder.blocks if block.in_layer]
    assert names == [
        "self_attention", "self_attention_add", "self_attention_norm",
        "feed_forward", "feed_forward_add", "feed_forward_norm",
    ]  # fmt: skip
    assert [block.id for block in encoder.blocks[-2:]] == ["encoder.logits", "encoder.next_sentence"]
    assert encoder.output.id == "encoder.feed_forward_norm"


@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
def test_every_shape_is_the_shape_of_its_activation(tiny_checkpoint, kind: str) -> None:
    checkpoint = tiny_checkpoint(kind)
    trace, stacks = stacks_of(checkpoint, layer=1)
    assert [stack.name for stack in stacks] == list(trace.stacks)
    for stack in stacks:
        for block in stack.blocks:
            if block.role == "tokens":
                assert block.shape == (len(trace.tokens(stack.name)),)
                continue
            assert block.shape == trace[block.activation].shape
            assert block.axes == trace[block.activation].axes
            assert not block.in_layer or ".layers.1." in block.activation


def test_a_sublayer_gives_on_what_the_sum_adds(tiny_checkpoint) -> None:
    """Only the outputs of blocks: attention passes on one vector per token, not its weights."""
    checkpoint = tiny_checkpoint("translator")
    trace, (_, decoder) = stacks_of(checkpoint, target="Le chat.")
    cross = next(block for block in decoder.blocks if block.id == "decoder.cross_attention")
    assert len(trace.target) != len(trace.source)
    for block in decoder.blocks:
        if block.role in ("self_attention", "cross_attention", "feed_forward"):
            assert block.shape == (len(trace.target), checkpoint.config.d_model)
    assert (cross.page, cross.focus) == ("attention", {"stack": "decoder", "kind": "cross", "layer": 0})


def test_every_sum_takes_what_entered_its_sublayer(tiny_checkpoint) -> None:
    for kind, entered in (("translator", "encoder.self_attention_norm"), ("bert", "encoder.self_attention")):
        _, stacks = stacks_of(tiny_checkpoint(kind))
        ids = [block.id for block in stacks[0].blocks]
        sums = [block for block in stacks[0].blocks if block.role == "add"]
        assert sums[0].skips_from == entered
        assert all(ids.index(block.skips_from) < ids.index(block.id) for block in sums)


def test_positions_inside_the_attention_are_written_on_it(tiny_checkpoint) -> None:
    _, (encoder,) = stacks_of(tiny_checkpoint("bert"))  # rotary
    blocks = {block.id: block for block in encoder.blocks}
    assert "rotated" in blocks["encoder.self_attention"].note
    assert "encoder.positions" not in blocks


def test_a_layer_beyond_a_shorter_stack_is_its_last(tiny_checkpoint) -> None:
    _, stacks = stacks_of(tiny_checkpoint("translator"), layer=7)
    assert [stack.layer for stack in stacks] == [1, 1]


def test_what_is_drawn_says_shapes_axes_and_where_it_leads(tiny_checkpoint) -> None:
    trace, stacks = stacks_of(tiny_checkpoint("translator"))
    data = diagram_data(stacks, trace, pages=("attention",))
    encoder = {block["id"]: block for block in data["columns"][0]["blocks"]}
    attention = encoder["encoder.self_attention"]
    size = len(trace.source)
    assert attention["shape"] == f"{size} × 32"
    assert attention["name"] == f"Self-attention, position {size} × model 32, opens Attention"
    assert "encoder.layers.0.self_attention.output" in attention["title"]
    assert attention["clickable"]
    assert not encoder["encoder.feed_forward"]["clickable"]
    assert data["columns"][0]["reads"] == f"{SENTENCE} </s>", "all that the shapes count"
    assert data["columns"][1]["reads"] == f"<s> {trace.target.text}", "a decoder reads what it has written so far"
    assert data["answer"] == trace.text
    assert data["edges"] == [{"from": "encoder.final_norm", "to": "decoder.cross_attention"}]


def test_a_model_with_one_stack_has_no_edge_between_stacks(tiny_checkpoint) -> None:
    for kind in ("gpt", "bert", "sentiment"):
        trace, stacks = stacks_of(tiny_checkpoint(kind))
        data = diagram_data(stacks, trace, pages=())
        assert data["edges"] == []
        if kind == "bert":
            assert data["columns"][0]["reads"] == f"<s> {SENTENCE} </s>"


@pytest.mark.parametrize(
    ("sentence", "reads"),
    [
        ("The cat ___ on the mat.", "<s> The cat <mask> on the mat. </s>"),
        ("___ cat sat on the ___.", "<s> <mask> cat sat on the <mask>. </s>"),
        ("___", "<s> <mask> </s>"),
    ],
)
def test_a_blank_is_drawn_where_it_was_typed(tiny_checkpoint, sentence: str, reads: str) -> None:
    checkpoint = tiny_checkpoint("bert")
    trace = transformer.trace(checkpoint, sentence)
    data = diagram_data(model_stacks(checkpoint.config, trace), trace, pages=())
    assert data["columns"][0]["reads"] == reads


@pytest.mark.parametrize(
    ("name", "labels", "notes"),
    [
        (
            "hf-gemma2",
            ["RMSNorm", "Masked self-attention", "RMSNorm", "Add", "RMSNorm", "Feed-forward", "RMSNorm", "Add"],
            {
                "feed_forward": "gated",
                "self_attention": "6 query heads share 2 key and value heads · attends to the last 6 tokens",
            },
        ),
        (
            "hf-neox",
            ["LayerNorm", "Masked self-attention", "Add", "LayerNorm", "Feed-forward", "Add"],
            {"feed_forward": "parallel to attention: reads the layer's input"},
        ),
    ],
)
def test_layers_of_other_families_are_drawn_as_they_are(name, labels, notes, tmp_path):
    checkpoint = transformer.load(foreign_checkpoint(name, tmp_path))
    trace = transformer.trace(checkpoint, "The cat sat.", strategy=transformer.Greedy(2))
    (stack,) = model_stacks(checkpoint.config, trace)
    assert [block.label for block in stack.blocks if block.in_layer] == labels
    noted = {block.id.split(".")[1]: block.note for block in stack.blocks}
    assert all(noted[name].endswith(note) for name, note in notes.items()), noted


def test_a_picture_is_read_as_patches_which_have_no_ids() -> None:
    checkpoint = transformer.load(ROOT / "checkpoints" / "vit-digits")
    trace = transformer.trace(checkpoint, pictures()[0][1])
    (encoder,) = model_stacks(checkpoint.config, trace)
    assert [block.label for block in encoder.blocks[:2]] == ["Class token, patches", "Patch embedding"]
    assert encoder.blocks[0].shape == (17,), "the class token and 4 × 4 patches"
