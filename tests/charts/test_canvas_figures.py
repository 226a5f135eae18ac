"""Payloads of the attention canvas: precise, small, labelled, masked, and rejected if inconsistent."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from charts.canvas import attention_maps
from charts.canvas.attention_heads import HeadWords, attention_heads
from charts.canvas.attention_maps import (
    KEY_TITLE,
    QUERY_TITLE,
    SHIFTED_TITLE,
    attention_grid,
    attention_lines,
    attention_map,
)
from charts.canvas.attention_overview import AnyHead, attention_overview, heads_of
from charts.canvas.figure import CanvasFigure
from charts.canvas.value_map import value_map
from charts.toolkit.payload_bytes import pack, unpack
from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import Token, TokenSequence


def sequence(displays: list[str], *, special: tuple[str, ...] = ("<s>", "</s>", "<pad>")) -> TokenSequence:
    return TokenSequence(
        tuple(
            Token(index=i, id=i, text=text.replace("·", " "), display=text, special=text in special)
            for i, text in enumerate(displays)
        )
    )


def view(
    query: list[str], key: list[str], *, layer: int = 0, n_heads: int = 3, causal: bool = False, seed: int = 0
) -> AttentionView:
    random = np.random.default_rng(seed)
    scores = random.normal(scale=2.0, size=(n_heads, len(query), len(key))).astype(np.float32)
    allowed = np.tri(len(query), len(key), dtype=bool) if causal else np.ones((len(query), len(key)), dtype=bool)
    powers = np.exp(scores) * allowed
    weights = (powers / powers.sum(axis=-1, keepdims=True)).astype(np.float32)
    return AttentionView(
        name=f"decoder.layers.{layer}.self_attention",
        stack="decoder",
        layer=layer,
        kind="self",
        weights=weights,
        allowed=allowed,
        scores=scores,
        query=sequence(query),
        key=sequence(key),
    )


QUERY = ["<s>", "·le", "·chat", "</s>"]
KEY = ["·the", "·cat", "·the", ".", "</s>"]


def read(figure: CanvasFigure) -> tuple[dict, dict[str, np.ndarray]]:
    """Return what the browser reads."""
    return unpack(figure.packed())


def words(count: int) -> list[str]:
    return [f"·w{i}" for i in range(count)]


def mask_of(bits: np.ndarray, rows: int, columns: int) -> np.ndarray:
    return np.unpackbits(bits, count=rows * columns, bitorder="little").reshape(rows, columns).astype(bool)


def test_map_carries_the_very_numbers_of_the_model():
    seen = view(QUERY, KEY)
    metadata, arrays = read(attention_map(seen, head=2))
    assert arrays["values"].dtype == np.float32
    np.testing.assert_array_equal(arrays["values"], seen.weights[2])
    assert metadata["kind"] == "map"
    assert (metadata["scale"], metadata["limit"]) == ("sequential", 1.0)


def test_map_carries_labels_titles_and_special_tokens():
    metadata, _ = read(attention_map(view(QUERY, KEY), head=0))
    assert metadata["rows"] == QUERY
    assert metadata["columns"] == ["·the", "·cat", "·the₂", ".", "</s>"]  # repeated words stay separate
    assert (metadata["row_title"], metadata["column_title"]) == (QUERY_TITLE, KEY_TITLE)
    assert metadata["special_rows"] == [0, 3]
    assert metadata["special_columns"] == [4]


def test_map_shifts_the_rows_to_the_predicted_tokens():
    shifted = ["·le", "·chat", "</s>", "·?"]
    metadata, _ = read(attention_map(view(QUERY, KEY), head=0, shifted_labels=shifted))
    assert metadata["rows"] == shifted
    assert metadata["row_title"] == SHIFTED_TITLE
    assert metadata["special_rows"] == []  # marks would be on the wrong rows


def test_map_marks_the_row_of_the_focused_token_and_refuses_one_that_is_not_there():
    metadata, _ = read(attention_map(view(QUERY, KEY), head=0, chosen_row=1))
    assert metadata["chosen_row"] == 1
    with pytest.raises(ValueError, match="chosen_row is 99"):
        attention_map(view(QUERY, KEY), head=0, chosen_row=99)


def test_stretched_map_ends_at_its_largest_weight_and_says_so():
    seen = view(QUERY, KEY)
    metadata, _ = read(attention_map(seen, head=1, stretch=True))
    assert metadata["limit"] == pytest.approx(float(seen.weights[1].max()))
    assert metadata["limit"] < 1
    assert "stretched" in metadata["legend"]
    assert "fixed" in read(attention_map(seen, head=1))[0]["legend"]


def test_only_a_page_s_map_of_weights_follows_the_pointer():
    seen = view(QUERY, KEY)
    assert "follows" not in read(attention_map(seen, head=1))[0]
    assert read(attention_map(seen, head=1, follow_pointer=True))[0]["follows"] is True
    labels = {"row_labels": QUERY, "column_labels": KEY}
    assert "follows" not in read(value_map(seen.scores[0], **labels, scale="diverging", follow_pointer=True))[0]


def test_masked_cells_travel_as_a_mask_not_as_a_low_value():
    seen = view(words(5), words(5), causal=True)
    _, arrays = read(attention_map(seen, head=0))
    np.testing.assert_array_equal(mask_of(arrays["allowed"], 5, 5), np.tri(5, dtype=bool))


def test_masked_scores_of_minus_infinity_are_no_hindrance():
    values = np.array([[1.5, -np.inf], [-0.5, 0.25]])
    figure = value_map(
        values,
        row_labels=["a", "b"],
        column_labels=["c", "d"],
        row_title="row",
        column_title="column",
        scale="diverging",
        allowed=np.array([[True, False], [True, True]]),
    )
    metadata, arrays = read(figure)
    assert metadata["limit"] == 1.5
    np.testing.assert_array_equal(arrays["values"], np.array([[1.5, 0.0], [-0.5, 0.25]], dtype=np.float32))


def test_only_the_cells_that_are_named_get_a_number():
    labels = {"row_labels": "ab", "column_labels": "cd"}
    assert read(value_map(np.eye(2), **labels, numbered=[(1, 0)]))[0]["numbered"] == [[1, 0]]
    assert "numbered" not in read(value_map(np.eye(2), **labels))[0]


def test_a_map_of_zeros_has_a_scale_all_the_same():
    figure = value_map(
        np.zeros((1, 2)), row_labels="a", column_labels="bc", row_title="r", column_title="c", scale="diverging"
    )
    assert read(figure)[0]["limit"] == 1.0


def test_lines_are_exact_to_half_a_step_of_sixteen_bits():
    seen = view(words(17), words(23), n_heads=4)
    metadata, arrays = read(attention_lines(seen, heads=[1, 3], selected_token=16))
    assert arrays["weights"].dtype == np.uint16
    assert np.abs(arrays["weights"] / 65535 - seen.weights).max() <= 1 / 131070 + 1e-9
    assert (metadata["heads"], metadata["selected"], metadata["same_tokens"]) == ([1, 3], 16, True)


def test_grid_holds_every_digit_and_many_heads_half_a_step_of_eight_bits(monkeypatch):
    views = [view(QUERY, KEY, layer=layer, seed=layer) for layer in range(2)]
    captions = {(1, 2): "previous token"}
    metadata, arrays = read(attention_grid(views, selected=(1, 0), captions=captions))
    monkeypatch.setattr(attention_maps, "MAX_EXACT", 10)
    rounded = read(attention_grid(views))[1]["weights"]
    assert rounded.dtype == np.uint8
    for weights, bound in ((arrays["weights"], 0), (rounded / 255, 1 / 510 + 1e-9)):
        for layer, sent in enumerate(weights.reshape(2, 3, len(QUERY), len(KEY))):
            assert np.abs(sent - np.float32(views[layer].weights)).max() <= bound
    assert metadata["selected"] == [1, 0]
    assert [(tile["layer"], tile["head"]) for tile in metadata["tiles"]] == [(i, h) for i in range(2) for h in range(3)]
    assert metadata["tiles"][5]["caption"] == "previous token"
    assert metadata["sorted"] is False


def test_a_stretched_grid_ends_each_map_at_its_own_largest_weight(monkeypatch):
    monkeypatch.setattr(attention_maps, "MAX_EXACT", 10)
    seen = view(QUERY, KEY)
    fixed, _ = read(attention_grid([seen]))
    assert "stretched" not in fixed and all("limit" not in tile for tile in fixed["tiles"])
    metadata, arrays = read(attention_grid([seen], stretch=True))
    assert metadata["stretched"]
    for tile, sent in zip(metadata["tiles"], arrays["weights"], strict=True):
        weights = np.where(seen.allowed, seen.weights[tile["head"]], 0)
        assert tile["limit"] == pytest.approx(weights.max()) and sent.max() == 255
        assert np.abs(sent / 255 * tile["limit"] - weights).max() <= tile["limit"] / 510 + 1e-6


def test_grid_draws_its_tiles_in_the_order_asked_for():
    views = [view(QUERY, KEY, layer=layer, seed=layer) for layer in range(2)]
    metadata, arrays = read(attention_grid(views, order=[(1, 2), (0, 0)]))
    assert [(tile["layer"], tile["head"]) for tile in metadata["tiles"]] == [(1, 2), (0, 0)]
    np.testing.assert_allclose(arrays["weights"][0], views[1].weights[2], rtol=1e-6)
    assert metadata["sorted"] is True


def test_grid_sends_a_mask_that_layers_share_only_once():
    same = [view(words(6), words(6), layer=layer, causal=True) for layer in range(3)]
    metadata, arrays = read(attention_grid(same))
    assert arrays["masks"].shape[0] == 1
    mixed = [*same[:2], view(words(6), words(6), layer=2, causal=False)]
    metadata, arrays = read(attention_grid(mixed))
    assert [tile["mask"] for tile in metadata["tiles"]] == [0] * 6 + [1] * 3
    assert mask_of(arrays["masks"][1], 6, 6).all()


@pytest.mark.parametrize(
    ("layers", "heads", "tokens", "limit"), [(6, 8, 32, 200_000), (12, 12, 64, 600_000)], ids=["6x8x32", "12x12x64"]
)
def test_all_heads_fit_into_little_room(layers, heads, tokens, limit):
    views = [view(words(tokens), words(tokens), layer=i, n_heads=heads, seed=i) for i in range(layers)]
    assert len(attention_grid(views).packed()) <= limit


def test_tokens_of_any_kind_survive_the_journey():
    odd = ["·<b>&", "·كتاب", "👩🏽‍🚀", '"', "⟨F0⟩", "·\u202edoc"]
    metadata, _ = read(attention_map(view(odd, odd), head=0))
    assert metadata["rows"] == odd


def test_a_payload_reads_the_same_deflated_or_not():
    small, large = np.arange(6, dtype=np.uint16), np.arange(60_000, dtype=np.float32).reshape(3, -1)
    payload = pack({"kind": "test"}, {"small": small, "large": large})
    assert len(payload) < large.nbytes
    _, arrays = unpack(payload)
    np.testing.assert_array_equal(arrays["small"], small)
    np.testing.assert_array_equal(arrays["large"], large)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"head": 3}, "there is no head 3; choose 0 to 2"),
        ({"head": -1}, "there is no head -1"),
        ({"head": 0, "selected": (4, 0)}, r"selected is \(4, 0\), outside of 4 rows and 5 columns"),
        ({"head": 0, "shifted_labels": ["·le"]}, "1 row labels for 4 rows"),
    ],
)
def test_map_refuses_what_does_not_fit(wrong, says):
    with pytest.raises(ValueError, match=says):
        attention_map(view(QUERY, KEY), **wrong)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"scale": "rainbow"}, "scale 'rainbow' is unknown"),
        ({"scale": "sequential"}, "smallest value is -2; signed values need scale='diverging'"),
        ({"limit": 1.0}, "limit is 1, but a value reaches 2"),
        ({"allowed": np.ones((1, 2), dtype=bool)}, r"allowed has shape \(1, 2\) but the values have \(2, 2\)"),
        ({"column_labels": ["a"]}, "1 column labels for 2 columns"),
        ({"values": np.zeros(3)}, r"values have shape \(3,\)"),
    ],
)
def test_value_map_refuses_what_does_not_fit(wrong, says):
    arguments = {
        "values": np.array([[1.0, -2.0], [0.0, 0.5]]),
        "row_labels": ["a", "b"],
        "column_labels": ["a", "b"],
        "row_title": "row",
        "column_title": "column",
        "scale": "diverging",
        **wrong,
    }
    with pytest.raises(ValueError, match=says):
        value_map(arguments.pop("values"), **arguments)


def test_weights_that_are_no_weights_are_refused_not_clipped():
    fine = view(QUERY, KEY)
    for changed, says in ((fine.weights * 2, "between 0 and 1"), (np.full_like(fine.weights, np.nan), "not finite")):
        broken = AttentionView(**{**fine.__dict__, "weights": changed})
        for build in (
            lambda v: attention_map(v, head=0),
            lambda v: attention_grid([v]),
            attention_lines,
        ):
            with pytest.raises(ValueError, match=says):
                build(broken)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"selected": (0, 3)}, r"selected names \(0, 3\)"),
        ({"captions": {(7, 0): "sink"}}, r"captions names \(7, 0\)"),
        ({"order": [(0, 0), (0, 0)]}, "names a head twice"),
    ],
)
def test_grid_refuses_heads_that_do_not_exist(arguments, says):
    with pytest.raises(ValueError, match=says):
        attention_grid([view(QUERY, KEY)], **arguments)


def test_grid_refuses_views_that_do_not_belong_together():
    with pytest.raises(ValueError, match="no views"):
        attention_grid([])
    with pytest.raises(ValueError, match="repeat"):
        attention_grid([view(QUERY, KEY), view(QUERY, KEY)])
    with pytest.raises(ValueError, match="different tokens"):
        attention_grid([view(QUERY, KEY), view(KEY, QUERY, layer=1)])


def test_lines_refuse_tokens_and_heads_that_do_not_exist():
    with pytest.raises(ValueError, match="selected_token is 4; it must be 0 to 3"):
        attention_lines(view(QUERY, KEY), selected_token=4)
    with pytest.raises(ValueError, match="there is no head 9"):
        attention_lines(view(QUERY, KEY), heads=[9])


def test_bytes_of_something_else_are_refused():
    with pytest.raises(ValueError, match="begins with b'GLAS'"):
        unpack(b"PNG\x00")
    with pytest.raises(ValueError, match="is float64; the canvas reads"):
        pack({}, {"values": np.zeros(2)})


def test_payloads_need_neither_torch_nor_streamlit():
    code = "import sys, charts.canvas.attention_maps; print(sorted({'torch', 'streamlit'} & set(sys.modules)))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def heads_figure(views, **more):
    words = {
        (v.layer, h): HeadWords(f"s{h}", f"title {v.layer}.{h}", "It does.") for v in views for h in range(v.n_heads)
    }
    return attention_heads(views, **{"selected": (0, 1), "words": words, **more})


def test_over_an_image_a_head_is_one_row_with_the_ink_of_every_patch():
    inks = [(place / 10, 0.5, 0.0, 1.0) for place in range(4)]
    tokens = TokenSequence(
        (Token(0, 1, "", "<s>", True), *(Token(n + 1, 9, "", f"p{n}", False, pixels=ink) for n, ink in enumerate(inks)))
    )
    weights = np.random.default_rng(3).dirichlet(np.ones(5), size=(2, 5))
    every = AttentionView("a", "encoder", 0, "self", weights, np.ones((5, 5), bool), np.log(weights), tokens, tokens)
    metadata, arrays = read(heads_figure([every], image_row=2))
    assert arrays["weights"].shape == (2, 2, 2)
    np.testing.assert_allclose(arrays["weights"].reshape(2, 4), weights[:, 2, 1:], rtol=1e-6)
    faded = {"faded": "Faded: no role"}
    assert read(heads_figure([every], clear=[(0, 0)], **faded))[0]["faded"] == "Faded: no role"
    assert "faded" not in read(heads_figure([every], clear=[(0, 0), (0, 1)], **faded))[0], "no map is pale"
    assert metadata["inks"] == [list(ink) for ink in inks] and metadata["rows"] == ["1", "2"]
    with pytest.raises(ValueError, match="patches of a square image"):
        heads_figure([view(KEY, KEY)], image_row=0)


def test_heads_are_a_grid_with_words_for_every_one_and_labels_for_those_with_a_job():
    views = [view(KEY, KEY, layer=layer, causal=True, seed=layer) for layer in range(2)]
    metadata, arrays = read(heads_figure(views, clear=[(1, 2), (0, 1)], selected=(0, 0)))
    _grid, alone = read(attention_grid(views))
    np.testing.assert_array_equal(arrays["weights"], alone["weights"])
    assert metadata["kind"] == "heads" and metadata["named"] == [[0, 0]]
    assert metadata["selected"] == [0, 0]
    for tile in metadata["tiles"]:
        place = tile["layer"], tile["head"]
        assert tile["title"] == "title {}.{}".format(*place)
        assert tile["caption"] == (f"s{place[1]}" if place in ((1, 2), (0, 1)) else "")
    shifted = [f"·p{index}" for index in range(len(KEY))]
    metadata, _ = read(heads_figure(views, shifted_labels=shifted))
    assert (metadata["rows"], metadata["row_title"], metadata["phrase"][0]) == (shifted, SHIFTED_TITLE, "predicting ")
    with pytest.raises(ValueError, match=r"selected"):
        heads_figure(views, selected=(7, 0))
    with pytest.raises(ValueError, match=r"words: there is nothing for \(0, 0\)"):
        heads_figure(views, words={})


def test_in_an_overview_heads_without_a_job_can_be_pale():
    views = [view(KEY, KEY, layer=layer, causal=True, seed=layer) for layer in range(2)]
    metadata, _ = read(attention_overview([views], clear=[[(1, 0)]]))
    assert metadata["dimmed"] and [tile.get("clear", False) for tile in metadata["parts"][0]["tiles"]].count(True) == 1
    assert "dimmed" not in read(attention_overview([views]))[0]


def test_an_overview_holds_the_grid_of_every_kind() -> None:
    groups = [
        [view(KEY, KEY, layer=layer, causal=True, seed=layer) for layer in range(2)],
        [replace(view(QUERY, KEY, seed=9), kind="cross", name="decoder.layers.0.cross_attention")],
    ]
    here = AnyHead("decoder", "cross", 0, 2)
    figure = attention_overview(groups, selected=here, captions=[{(0, 1): "sink"}, {}])
    metadata, arrays = read(figure)
    assert metadata["title"] == "all 9 heads" and metadata["selected"] == list(here)
    for index, (part, views) in enumerate(zip(metadata["parts"], groups, strict=True)):
        grid, alone = read(attention_grid(views))
        assert [(tile["layer"], tile["head"]) for tile in part["tiles"]] == [
            (tile["layer"], tile["head"]) for tile in grid["tiles"]
        ]
        assert (part["rows"], part["columns"]) == (grid["rows"], grid["columns"])
        np.testing.assert_array_equal(arrays[f"weights{index}"], alone["weights"])
        np.testing.assert_array_equal(arrays[f"masks{index}"], alone["masks"])
    assert metadata["parts"][0]["tiles"][1]["caption"] == "sink"
    assert here in heads_of(figure) and len(heads_of(figure)) == 9


def test_an_overview_refuses_what_is_not_there() -> None:
    with pytest.raises(ValueError, match="no views"):
        attention_overview([])
    with pytest.raises(ValueError, match="no such head"):
        attention_overview([[view(KEY, KEY)]], selected=AnyHead("encoder", "self", 0, 0))
