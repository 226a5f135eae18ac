"""Pages and frames of the canvas: their content, and their fallback without a browser."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from charts import notebook
from charts.canvas import module as canvas
from charts.canvas.figure import CanvasFigure
from charts.toolkit.payload_bytes import unpack
from glassformer.notebook import attention_grid, attention_lines, attention_map

ROOT = Path(__file__).resolve().parents[2]


def held(page: str, name: str) -> bytes:
    return base64.b64decode(re.search(rf'<script type="text/plain" id="{name}">([^<]*)</script>', page)[1])


def test_the_script_can_stand_in_a_page() -> None:
    module = canvas.canvas_module()
    assert "</script" not in module and "<!--" not in module
    assert not re.search(r"https?://(?!www\.w3\.org/)", module)
    assert len(canvas.loader_script()) < 2000  # Streamlit sends it with every figure


def test_the_page_holds_the_payload_and_nothing_of_its_text() -> None:
    figure = CanvasFigure({"kind": "map", "title": "<b> & {{payload}}", "rows": ["</script>"]}, {})
    page = figure.html()
    assert held(page, "payload") == figure.packed()
    assert held(page, "script") == canvas.packed_module()
    assert "<title>&lt;b&gt; &amp; {{payload}}</title>" in page
    assert page.count("</script>") == 3
    assert "default-src 'none'" in page


def test_a_figure_of_a_notebook_is_a_frame_without_rights(causal_view, tmp_path: Path) -> None:
    figure = notebook.attention_lines(causal_view, heads=[0])
    frame = re.fullmatch(
        r'<iframe title="[^"]+" sandbox="allow-scripts allow-downloads" style="[^"]+" srcdoc="([^"]*)"></iframe>',
        figure._repr_html_(),
    )
    assert unescape(frame[1]) == figure.html()
    assert figure.save(tmp_path / "lines.html").read_text(encoding="utf-8") == figure.html()
    assert "CanvasFigure(lines" in repr(figure)
    metadata, arrays = unpack(held(figure.html(), "payload"))
    assert metadata["heads"] == [0]
    assert arrays["weights"].shape == causal_view.weights.shape


def test_a_view_shows_all_its_heads(causal_view) -> None:
    metadata, arrays = unpack(held(unescape(causal_view._repr_html_()), "payload"))
    assert len(metadata["tiles"]) == causal_view.n_heads == len(arrays["weights"])
    assert metadata["per_line"] == int(np.ceil(np.sqrt(causal_view.n_heads)))
    assert str(causal_view.n_heads) in repr(causal_view) and "array" not in repr(causal_view)


def test_arrays_and_tokens_are_enough_for_every_figure() -> None:
    weights = np.tri(4, dtype=np.float32)[None, None] * np.ones((2, 3, 1, 1), dtype=np.float32)
    weights = list(weights / weights.sum(axis=-1, keepdims=True))
    tokens = ["<s>", "Ġcat", "<b>", "</script>"]
    grid = attention_grid(weights, tokens)
    assert [(tile["layer"], tile["head"]) for tile in grid.metadata["tiles"]] == [
        (i, j) for i in (0, 1) for j in range(3)
    ]
    assert grid.metadata["rows"] == ["<s>", "·cat", "<b>", "</script>"] and grid.metadata["special_rows"] == [0]
    assert "<b>" not in grid.html() and grid.html().count("</script>") == 3
    assert attention_map(weights, tokens).metadata == grid.metadata  # layer and head are chosen in the figure
    one_layer = attention_map(weights, tokens, layer=1)
    assert {tile["layer"] for tile in one_layer.metadata["tiles"]} == {1}
    exact = attention_map(weights, tokens, layer=1, head=2)
    assert exact.metadata["kind"] == "map" and exact.metadata["title"] == "decoder self-attention, layer 1, head 2"
    np.testing.assert_array_equal(exact.arrays["values"], weights[1][2])
    assert attention_map(weights[0][:1], tokens).metadata["kind"] == "map"  # there is only one head
    assert attention_lines(weights, tokens, layer=1).metadata["title"] == "decoder self-attention, layer 1"


def test_cross_attention_has_tokens_of_its_own_on_each_axis() -> None:
    figure = attention_map(np.full((2, 3, 2), 0.5), ["a", "b", "c"], key_tokens=["x", "y"], head=0)
    assert (figure.metadata["rows"], figure.metadata["columns"]) == (["a", "b", "c"], ["x", "y"])
    assert figure.metadata["title"].startswith("decoder cross-attention")


def test_a_call_that_leaves_something_out_says_what(causal_view) -> None:
    with pytest.raises(ValueError, match="texts of the tokens as the second argument"):
        attention_map(causal_view.weights)
    with pytest.raises(ValueError, match="own tokens and mask"):
        attention_grid([causal_view], causal_view.query)
    weights = list(np.full((2, 3, 1, 1), 1.0))
    with pytest.raises(ValueError, match="2 layers; choose one"):
        attention_map(weights, ["a"], head=0)
    with pytest.raises(ValueError, match="no layer 2; the layers are 0, 1"):
        attention_map(weights, ["a"], layer=2)


def test_where_nothing_draws_a_view_is_text() -> None:
    """The library works without ``charts``: a notebook then shows the view as text."""
    code = """
import sys
sys.modules["charts"] = None
import numpy, transformer
from transformer.text.tokens import Token, TokenSequence
one = TokenSequence((Token(index=0, id=0, text="a", display="a"),))
array = numpy.ones((2, 1, 1), dtype=numpy.float32)
place = ("encoder.layers.0.self_attention", "encoder", 0, "self")
view = transformer.AttentionView(*place, array, array[0] > 0, array, one, one)
assert view._repr_html_() is None
print(repr(view))
"""
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert result.stdout.strip() == "AttentionView(encoder.layers.0.self_attention: 2 heads, 1 query × 1 key tokens)"
