"""The gallery: a page per sentence, an index that links to them, and the same figure in a notebook."""

from __future__ import annotations

import base64
import re
from html import escape
from pathlib import Path

import numpy as np
import pytest

import transformer
from charts.toolkit.payload_bytes import unpack
from glassformer.notebook import living_picture
from transformer.errors import InputError
from views.overview.gallery import Entry, read_entries, write_gallery

SENTENCE = "The <b>old</b> man told us a story."


def payload(page: str) -> tuple[dict, dict[str, np.ndarray]]:
    return unpack(base64.b64decode(re.search(r'class="drawing"><script type="text/plain">([^<]*)</script>', page)[1]))


def test_a_page_for_each_sentence_and_an_index(checkpoints_folder: Path, tmp_path: Path) -> None:
    names = ("tiny-translator", "tiny-gpt", "tiny-sentiment")
    entries = tuple(Entry(str(checkpoints_folder / name), SENTENCE) for name in names)
    *pages, index = write_gallery(entries, tmp_path / "out")
    assert [page.name for page in pages] == ["01-tiny-translator.html", "02-tiny-gpt.html", "03-tiny-sentiment.html"]
    for name, page in zip(names, pages, strict=True):
        trace = transformer.trace(transformer.load(checkpoints_folder / name), SENTENCE)
        html = page.read_text(encoding="utf-8")
        metadata, arrays = payload(html)
        assert f"<title>{escape(SENTENCE)}</title>" in html and trace.checkpoint.fingerprint in html
        assert metadata["title"] == SENTENCE and metadata["text"] == trace.text and metadata["inside"]
        for stack, kind in trace.attention_kinds():
            recorded = [trace.attention(stack, layer, kind).weights for layer in range(trace.n_layers(stack))]
            assert np.array_equal(arrays[f"{stack}.{kind}.weights"], np.stack(recorded))
    html = index.read_text(encoding="utf-8")
    assert [page.name in html for page in pages] == [True] * 3
    assert "&lt;b&gt;old" in html and "<b>old" not in html
    assert "default-src 'none'" in html and "http" not in html.replace("http-equiv", "")


@pytest.mark.parametrize(
    "text",
    [
        *("", "page = 3", "[[page]]\nsentence = 'a'", "[[page]]\ncheckpoint = 1\nsentence = 'a'", "[[page"),
        "page = " + "[" * 5000 + "]" * 5000,
    ],
)
def test_a_file_that_says_something_else(tmp_path: Path, text: str) -> None:
    file = tmp_path / "sentences.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="sentences.toml"):
        read_entries(file)


def test_entries_are_read(tmp_path: Path) -> None:
    file = tmp_path / "sentences.toml"
    file.write_text("[[page]]\ncheckpoint = 'x'\nsentence = 'a'\nanswer = 'b'\n", encoding="utf-8")
    assert read_entries(file) == (Entry("x", "a", "b"),)
    with pytest.raises(InputError, match="nowhere"):
        read_entries(tmp_path / "nowhere.toml")


def test_the_same_picture_in_a_notebook(checkpoints_folder: Path) -> None:
    trace = transformer.trace(transformer.load(checkpoints_folder / "tiny-gpt"), SENTENCE)
    figure = living_picture(trace, layer=1)
    assert figure.metadata["begin"] == {"layer": 1} and len(figure.metadata["inside"]) == trace.n_layers("decoder")
    assert "<iframe" in figure._repr_html_()
    assert living_picture(trace, layers=[("decoder", 1)]).metadata["inside"][0]["layer"] == 1
