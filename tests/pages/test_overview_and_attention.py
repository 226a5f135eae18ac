"""Overview and Attention open a typed sentence on the same row, layer and word."""

from __future__ import annotations

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from charts.toolkit.payload_bytes import unpack
from tests.conftest import ROOT
from tests.pages.conftest import is_fine

SENTENCES = (
    "My grandmother bakes apple pie every Sunday.",
    "He lost his keys, so he could not open the door.",
    "Birds can fly.",
)
PROMPTS = {"gpt-en": ("The children went to the",), "bert-en": ("The children ___ to the park.",)}
CASES = [
    (name, sentence)
    for name in ("en-fr", "gpt-en", "bert-en", "sentiment")
    for sentence in (*SENTENCES, *PROMPTS.get(name, ()))
]


def drawn(app: AppTest, key: str) -> tuple[dict, dict]:
    (sent,) = [one.proto.bytes for one in app.get("bidi_component") if one.key == key]
    return unpack(sent)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "sentence"), CASES)
def test_both_open_on_one_row_and_the_head_looks_at_the_word_that_the_overview_names(
    name: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They contradicted each other: chaque came from ‘every’ on one page, and from ‘apple’ on the next."""
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    app.query_params["checkpoint"], app.query_params["sentence"] = name, sentence
    is_fine(app.run())
    picture, arrays = drawn(app, "living picture")
    begin = picture["begin"]
    last = picture["stacks"][-1]["name"]
    kind = "cross" if len(picture["stacks"]) > 1 else "self"
    assert begin["stack"] == last and begin["token"] > 0
    mean = arrays[f"{last}.{kind}.weights"][begin["layer"]].mean(axis=0)[begin["token"]]
    if kind == "self":
        mean = np.where(np.arange(len(mean)) == begin["token"], 0, mean)  # the picture names another token
    app.switch_page("pages/attention.py").run()
    is_fine(app)
    attention, values = drawn(app, "attention map")
    assert attention["chosen_row"] == begin["token"]
    row = values["values"][attention["chosen_row"]]
    assert int(row.argmax()) == int(mean.argmax()), (attention["columns"][row.argmax()], attention["title"])
    focus = app.session_state["focus"]
    assert (focus.stack, focus.kind, focus.layer) == (last, kind, begin["layer"])
