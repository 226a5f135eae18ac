"""Compare with two files of one model: the same head, the roles and the logits, on the same tokens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import transformer
from charts.toolkit.style import three_digits
from tests.pages.conftest import is_fine, said
from tests.transformer.guests.gguf_files import token_keys, write_gguf
from tests.transformer.guests.hugging_face import build
from tests.transformer.text.foreign_folders import byte_level
from transformer.interventions.experiment import same_tokens
from ui.compute import loading
from views.compare.compare_view_model import of_one_model

pytest.importorskip("gguf")
SENTENCE = "The cat sat on the mat."


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    backend = byte_level(special=("<s>", "</s>"))
    keys = token_keys(backend, "gpt2", pre="gpt-2", bos_token_id=0, eos_token_id=1)
    model = build("llama 3, biases", vocab_size=backend.get_vocab_size())
    found = [write_gguf(tmp_path / f"{name}.gguf", model, tokens=keys, packed=name) for name in ("F32", "F16", "BF16")]
    monkeypatch.setattr(loading, "_typed", {path.name: path for path in found})
    return found


def keep_drawn(monkeypatch: pytest.MonkeyPatch, drawn: dict) -> None:
    """Record the maps that the page draws, by their keys."""
    monkeypatch.setattr(
        "views.compare.run_comparison.show_map", lambda figure, *, key, **_: drawn.update({key: figure})
    )


def test_two_packings_of_one_model(
    open_app, tiny_checkpoint, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: dict = {}
    monkeypatch.setattr(
        "views.compare.run_comparison.show_map", lambda figure, *, key, **_: drawn.update({key: figure})
    )
    address = {"checkpoint": "F32.gguf", "sentence": SENTENCE, "compare_mode": "checkpoints", "other": "F16.gguf"}
    app = open_app("compare", **address, layer=1, head=2)
    is_fine(app)
    one, other, _third = map(transformer.load, files)
    assert of_one_model(one, other) and not of_one_model(one, tiny_checkpoint("gpt"))
    trace = transformer.trace(one, SENTENCE, strategy=transformer.Greedy(1))
    packed = same_tokens(trace, checkpoint=other)
    change = packed.attention("decoder", 1).weights[2] - trace.attention("decoder", 1).weights[2]
    assert drawn["compare map difference"].arrays["values"] == pytest.approx(change, abs=1e-6)
    logits = packed.values("decoder.logits")[-1] - trace.values("decoder.logits")[-1]
    assert f"by at most {three_digits(float(np.abs(logits).max()))}" in said(app)
    assert "heads" in said(app) and "role in this sentence" in said(app)


def test_a_third_file_stands_beside_both(open_app, files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict = {}
    monkeypatch.setattr(
        "views.compare.run_comparison.show_map", lambda figure, *, key, **_: drawn.update({key: figure})
    )
    address = {"checkpoint": "BF16.gguf", "sentence": SENTENCE, "compare_mode": "checkpoints", "other": "F16.gguf"}
    app = open_app("compare", **address, layer=1, head=2)
    third = app.selectbox(key="compare_third")
    assert third.options == ["none", "F32.gguf"], "files of this model alone, and not those that are chosen already"
    is_fine(third.set_value("F32.gguf").run())
    original, half, packed = map(transformer.load, files)
    trace = transformer.trace(packed, SENTENCE, strategy=transformer.Greedy(1))
    limits = set()
    for letter, checkpoint in (("", half), (" C", original)):
        run = same_tokens(trace, checkpoint=checkpoint)
        change = run.attention("decoder", 1).weights[2] - trace.attention("decoder", 1).weights[2]
        figure = drawn[f"compare map difference{letter}"]
        assert figure.arrays["values"] == pytest.approx(change, abs=1e-6)
        limits.add(figure.metadata["limit"])
    assert len(limits) == 1, "both differences on one scale"
    assert {"compare map A", "compare map B", "compare map C", "compare heads", "compare heads C"} <= drawn.keys()
    columns = next(table.value for table in app.dataframe if "C − A" in table.value.columns)
    logits = run.values("decoder.logits")[-1] - trace.values("decoder.logits")[-1]
    assert columns["C − A"].abs().max() <= np.abs(logits).max() + 1e-6
    assert "KL(A ‖ B)" in said(app) and "KL(A ‖ C)" in said(app)
