"""Figures of 256 tokens: few labels at a time, all of them available, and omissions are stated."""

from __future__ import annotations

import numpy as np
import pytest

from charts.figures.gradients import gradient_rows
from charts.figures.map_strip import MAX_CELLS, map_strip
from charts.figures.token_boxes import token_lengths
from charts.figures.units import hidden_heatmap
from charts.toolkit import parts, style
from charts.toolkit.figure_table import figure_table
from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import Token, TokenSequence

N = 256


def sentence(count: int = N, name: str = "source") -> TokenSequence:
    """Return repeated words, one of them markup."""
    words = ["<b>", "·the", "·sea"]
    return TokenSequence(tuple(Token(k, 10 + k % 3, words[k % 3], words[k % 3], False) for k in range(count)), name)


@pytest.mark.parametrize("axis", [style.token_axis, style.token_rows])
def test_an_axis_writes_as_many_labels_as_fit_and_knows_all(axis) -> None:
    found = axis(sentence(), title="token")
    assert found["type"] == "category" and found["nticks"] == style.MAX_LABELS and "ticktext" not in found
    assert found["categoryarray"] == [str(k) for k in range(N)]
    assert [found["labelalias"][str(k)] for k in range(4)] == ["&lt;b&gt;", "·the", "·sea", "&lt;b&gt;"]
    assert sorted(found["range"]) == [-0.5, N - 0.5]
    few = axis(sentence(style.MAX_LABELS), title="token")
    assert len(few["ticktext"]) == style.MAX_LABELS and "type" not in few


def test_the_table_of_a_long_figure_has_every_token() -> None:
    figure = hidden_heatmap(np.zeros((N, 3), dtype=np.float32), tokens=sentence())
    column = figure_table(figure)["y: token"]
    assert len(column) == 3 * N and column.iloc[0].startswith("<b> (0)") and column.iloc[-1] == "<b> (255)"


def test_a_figure_does_not_grow_for_ever() -> None:
    assert style.rows_height(N) == style.rows_height(style.MAX_ROWS) == style.rows_height(10_000)
    assert style.rows_height(10) < style.rows_height(40) < style.rows_height(60)


def test_narrow_cells_have_no_gaps_and_many_bars_no_numbers() -> None:
    assert "ygap" not in parts.heatmap(np.zeros((N, 4)), hover="", bar=None, ygap=1, xgap=1)
    assert parts.heatmap(np.zeros((N, 4)), hover="", bar=None, ygap=1, xgap=1)["xgap"] == 1
    assert parts.bar_rows(np.arange(N), hover="")["text"] is None
    assert len(parts.bar_rows(np.arange(9), hover="")["text"]) == 9


def test_a_long_ruler_is_named_on_hover_only() -> None:
    long, short = (token_lengths({"one": sentence(count)}) for count in (N, 9))
    assert long.data[0].textposition == "none" and short.data[0].textposition == "inside"
    assert len(long.data[0].text) == N


def test_all_rows_of_the_table_are_one_shape() -> None:
    moved = np.linspace(0, 1, 500, dtype=np.float32)
    figure = gradient_rows(moved, tokens=sentence())
    skyline = next(trace for trace in figure.data if trace.name == "not looked up")
    assert skyline.mode == "lines" and skyline.fill == "tozeroy" and len(skyline.y) == 497
    np.testing.assert_array_equal(skyline.y, np.delete(moved, [10, 11, 12]))


def views(n_queries: int, n_keys: int, *, causal: bool) -> list[AttentionView]:
    random = np.random.default_rng(0)
    allowed = np.tril(np.ones((n_queries, n_keys), dtype=bool)) if causal else np.ones((n_queries, n_keys), dtype=bool)
    found = []
    for layer in range(2):
        weights = np.where(allowed, random.random((1, n_queries, n_keys)), 0)
        weights = (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)
        tokens = sentence(n_queries, "target"), sentence(n_keys, "target")
        kind = "self" if n_queries == n_keys else "cross"
        tokens = (tokens[0], tokens[0] if kind == "self" else sentence(n_keys))
        found.append(AttentionView(f"layer {layer}", "decoder", layer, kind, weights, allowed, weights, *tokens))
    return found


@pytest.mark.parametrize(
    ("n_queries", "n_keys", "causal"), [(N, N, True), (N, N, False), (20, 200, False), (97, 97, True)]
)
def test_small_maps_show_the_largest_weight_of_a_block_and_say_so(n_queries: int, n_keys: int, causal: bool) -> None:
    both = views(n_queries, n_keys, causal=causal)
    figure = map_strip(both, head=0, names=["a", "b"], chosen=0)
    maps = [trace for trace in figure.data if trace.zmax == 1 and trace.hovertemplate.startswith(("a", "b"))]
    assert len(maps) == 2
    for trace, view in zip(maps, both, strict=True):
        z = np.asarray(trace.z)
        assert max(z.shape) <= MAX_CELLS
        high, wide = (int(np.diff(np.asarray(place))[0]) for place in (trace.y, trace.x))
        for row, column in [(0, 0), (z.shape[0] - 1, 0), (z.shape[0] - 1, z.shape[1] - 1), (3, 2)]:
            block = np.s_[row * high : (row + 1) * high, column * wide : (column + 1) * wide]
            weights, allowed = view.weights[0][block], view.allowed[block]
            wanted = weights[allowed].max() if allowed.any() else np.nan
            np.testing.assert_array_equal(z[row, column], np.float32(wanted))
        assert f"the largest of {high} × {wide} weights" in trace.hovertemplate
    assert "the largest of" in maps[0].colorbar.title.text


def test_short_maps_have_every_weight() -> None:
    both = views(30, 30, causal=True)
    figure = map_strip(both, head=0, names=["a", "b"], chosen=0)
    z = np.asarray(figure.data[0].z)
    np.testing.assert_array_equal(z[both[0].allowed], both[0].weights[0][both[0].allowed])
    assert "largest" not in figure.data[0].hovertemplate and np.isnan(z[0, 1])
