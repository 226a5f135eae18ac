"""The blocks of the diagram follow the forward pass and have this trace's shapes."""

from __future__ import annotations

import pytest

import transformer
from tests.conftest import ROOT
from tests.foreign_checkpoints import foreign_checkpoint
from ui.words.texts import pictures
from views.overview.model_diagram import diagram_data, model_columns

SENTENCE = "The cat <b>sat</b> on the mat."
KINDS = ("translator", "gpt", "bert", "sentiment")
PRE_NORM = [
    "tokens", "embedding", "positions",
    "self_attention_norm", "self_attention", "self_attention_add",
    "cross_attention_norm", "cross_attention", "cross_attention_add",
    "feed_forward_norm", "feed_forward", "feed_forward_add",
    "final_norm", "logits",
]  # fmt: skip
POST_NORM = [
    "tokens", "embedding",
    "self_attention", "self_attention_add", "self_attention_norm",
    "feed_forward", "feed_forward_add", "feed_forward_norm",
    "logits", "next_sentence",
]  # fmt: skip


@pytest.fixture
def drawn(tiny_checkpoint):
    """Return ``drawn(kind)``: a trace of ``SENTENCE`` and its columns."""

    def columns_of(kind: str, *, layer: int = 0, **values):
        trace = transformer.trace(tiny_checkpoint(kind), SENTENCE, **values)
        return trace, model_columns(trace, layer=layer)

    return columns_of


@pytest.mark.parametrize(
    ("kind", "blocks", "output", "entered"),
    [
        ("translator", PRE_NORM, "encoder.final_norm", "encoder.self_attention_norm"),
        ("bert", POST_NORM, "encoder.feed_forward_norm", "encoder.self_attention"),
    ],
)
def test_blocks_stand_in_the_order_of_the_forward_pass(drawn, kind, blocks, output, entered) -> None:
    _, columns = drawn(kind)
    assert [block.id.partition(".")[2] for block in columns[-1].blocks] == blocks
    assert columns[0].output.id == output
    ids, sums = ([block.id for block in columns[0].blocks], [b for b in columns[0].blocks if b.role == "add"])
    assert not [id for id in ids if "cross_attention" in id]
    assert sums[0].skips_from == entered, "a sum adds what entered its sub-layer"
    assert all(ids.index(block.skips_from) < ids.index(block.id) for block in sums)
    rotated = "rotated" in next(block.note for block in columns[0].blocks if block.id == "encoder.self_attention")
    assert rotated == ("encoder.positions" not in ids), "positions inside of the attention are written on it"


@pytest.mark.parametrize("kind", KINDS)
def test_every_shape_is_the_shape_of_its_activation(drawn, kind: str) -> None:
    trace, columns = drawn(kind, layer=1)
    assert [column.stack for column in columns] == list(trace.stacks)
    for column in columns:
        for block in column.blocks:
            if block.role == "tokens":
                assert block.shape == (len(trace.tokens(column.stack)),)
                continue
            assert (block.shape, block.axes) == (trace[block.activation].shape, trace[block.activation].axes)
            assert not block.in_layer or ".layers.1." in block.activation
    assert [column.layer for column in drawn("translator", layer=7)[1]] == [1, 1], "a shorter stack shows its last"


def test_a_sublayer_gives_on_what_the_sum_adds(drawn) -> None:
    """Only the outputs of blocks: attention passes on one vector per token, not its weights."""
    trace, (_, decoder) = drawn("translator", target="Le chat.")
    assert len(trace.target) != len(trace.source)
    for block in decoder.blocks:
        if block.role in ("self_attention", "cross_attention", "feed_forward"):
            assert block.shape == (len(trace.target), trace.checkpoint.config.d_model)
        if block.role == "cross_attention":
            assert (block.page, block.focus) == ("attention", {"stack": "decoder", "kind": "cross", "layer": 0})


def test_what_is_drawn_says_shapes_axes_and_where_it_leads(drawn) -> None:
    trace, columns = drawn("translator")
    data = diagram_data(columns, trace, pages=("attention",))
    encoder = {block["id"]: block for block in data["columns"][0]["blocks"]}
    attention, size = encoder["encoder.self_attention"], len(trace.source)
    assert attention["shape"] == f"{size} × 32"
    assert attention["name"] == f"Self-attention, position {size} × model 32, opens Attention"
    assert "encoder.layers.0.self_attention.output" in attention["title"]
    assert attention["clickable"] and not encoder["encoder.feed_forward"]["clickable"]
    assert data["columns"][0]["reads"] == f"{SENTENCE} </s>", "all that the shapes count"
    assert data["columns"][1]["reads"] == f"<s> {trace.target.text}", "a decoder reads what it has written so far"
    assert data["answer"] == trace.text
    assert data["edges"] == [{"from": "encoder.final_norm", "to": "decoder.cross_attention"}]
    for kind in KINDS[1:]:
        trace, columns = drawn(kind)
        assert diagram_data(columns, trace, pages=())["edges"] == [], "of one stack"


@pytest.mark.parametrize(
    ("sentence", "reads"),
    [
        ("The cat ___ on the mat.", "<s> The cat <mask> on the mat. </s>"),
        ("___ cat sat on the ___.", "<s> <mask> cat sat on the <mask>. </s>"),
        ("___", "<s> <mask> </s>"),
        (SENTENCE, f"<s> {SENTENCE} </s>"),
    ],
)
def test_a_blank_is_drawn_where_it_was_typed(tiny_checkpoint, sentence: str, reads: str) -> None:
    trace = transformer.trace(tiny_checkpoint("bert"), sentence)
    assert diagram_data(model_columns(trace), trace, pages=())["columns"][0]["reads"] == reads


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
def test_layers_of_other_families_are_drawn_as_they_are(name, labels, notes, tmp_path) -> None:
    checkpoint = transformer.load(foreign_checkpoint(name, tmp_path))
    trace = transformer.trace(checkpoint, "The cat sat.", strategy=transformer.Greedy(2))
    (stack,) = model_columns(trace)
    assert [block.label for block in stack.blocks if block.in_layer] == labels
    noted = {block.id.split(".")[1]: block.note for block in stack.blocks}
    assert all(noted[name].endswith(note) for name, note in notes.items()), noted


def test_a_picture_is_read_as_patches_which_have_no_ids() -> None:
    trace = transformer.trace(transformer.load(ROOT / "checkpoints" / "vit-digits"), pictures()[0][1])
    (encoder,) = model_columns(trace)
    assert [block.label for block in encoder.blocks[:2]] == ["Class token, patches", "Patch embedding"]
    assert encoder.blocks[0].shape == (17,), "the class token and 4 × 4 patches"
