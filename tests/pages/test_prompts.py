"""How a sentence is read (text, special tokens, chat), and whether maps include generated text."""

from __future__ import annotations

from pathlib import Path

import pytest

import transformer
from tests.pages.conftest import codes, is_fine, open_path, said
from tests.transformer.text.test_chat import TEMPLATE, gguf_of
from transformer.files.chats import with_prompt
from transformer.runs.inputs import prompt_ids
from transformer.text.prompt import Prompt
from ui.compute import loading
from ui.words.texts import common

pytest.importorskip("gguf")
SENTENCE = "The cat sat."


@pytest.fixture
def folder(open_app, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(loading, "_typed", {})
    path = gguf_of(tmp_path, TEMPLATE)
    is_fine(open_path(open_app("checkpoint"), path))
    return path


def box(app, name: str):
    widgets = (*app.segmented_control, *app.text_input, *app.toggle)
    return next(widget for widget in widgets if widget.key.startswith(f"prompt {name} "))


def test_a_sentence_becomes_a_chat(open_app, folder: Path) -> None:
    checkpoint = transformer.load(folder)
    app = open_app("tokens", checkpoint=folder.name, sentence=SENTENCE)
    is_fine(app)
    assert "<|im_start|>" not in said(app)
    is_fine(box(app, "way").set_value("chat").run())
    is_fine(box(app, "system").set_value("Be short.").run())
    is_fine(box(app, "variables").set_value('{"thinking": true}').run())
    prompt = Prompt(True, "Be short.", '{"thinking": true}')
    assert any(repr(prompt) in code and "with_prompt(checkpoint" in code for code in codes(app))
    again = open_app("attention", checkpoint=folder.name, sentence=SENTENCE, way="chat", system="Be short.")
    is_fine(again)
    ids = prompt_ids(with_prompt(checkpoint, Prompt(True, "Be short.")), SENTENCE)
    assert again.session_state["focus"].token == len(ids) - 1, "the last token that was read"
    box(again, "variables").set_value("[").run()
    assert "JSON object" in again.warning[0].value and not again.error


def test_what_the_template_writes_is_told_from_what_was_typed(open_app, folder: Path) -> None:
    """This holds even if the system message contains the same words."""
    checkpoint = transformer.load(folder)
    alone = len(checkpoint.tokenizer.encode(SENTENCE))
    app = open_app("tokens", checkpoint=folder.name, sentence=SENTENCE, way="chat", system=f"Say: {SENTENCE}")
    is_fine(app)
    assert f"**{alone}** tokens for **{len(SENTENCE)}** characters" in said(app)
    ids = prompt_ids(with_prompt(checkpoint, Prompt(True, f"Say: {SENTENCE}")), SENTENCE)
    begins = max(at for at in range(len(ids)) if ids[at : at + alone] == checkpoint.tokenizer.encode(SENTENCE))
    added = f"added {begins} tokens before what you typed and {len(ids) - begins - alone} tokens after it"
    assert added in said(app)


def test_a_way_that_is_not_known_is_told(open_app, folder: Path) -> None:
    app = open_app("tokens", checkpoint=folder.name, sentence=SENTENCE, way="aloud")
    is_fine(app)
    assert any("cannot read a sentence as" in line.value for line in app.caption)
    app = open_app("tokens", checkpoint="tiny-gpt", sentence=SENTENCE, way="chat")
    is_fine(app)
    assert app.session_state["focus"].way == "" and not any("prompt way" in one.key for one in app.segmented_control)


def test_the_maps_hold_the_prompt_alone_until_more_is_asked_for(
    open_app, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = len(prompt_ids(transformer.load(folder), SENTENCE))
    app = open_app("embeddings", checkpoint=folder.name, sentence=SENTENCE)
    is_fine(app)
    focus = app.session_state["focus"]
    assert (focus.token, focus.written) == (count - 1, 0)
    assert any("strategy=transformer.Greedy(1)" in code for code in codes(app))
    is_fine(box(app, "written").set_value(True).run())
    assert app.session_state["focus"].token == count - 1, "the last token that was typed"
    assert not any("Greedy(1)" in code for code in codes(app))
    assert app.query_params["written"] in ("1", ["1"])
    drawn: list = []
    monkeypatch.setattr("ui.page.living_picture.show_living_picture", lambda figure, **_: drawn.append(figure))
    app = open_app("overview", checkpoint=folder.name, sentence=SENTENCE)
    is_fine(app)
    assert drawn[-1].metadata["begin"]["token"] == count - 1
    assert not any(toggle.key.startswith("prompt written") for toggle in app.toggle)
    app = open_app("attention", checkpoint="tiny-gpt", sentence=SENTENCE)
    assert app.session_state["focus"].written == 1 and common("prompt.written") not in [t.label for t in app.toggle]
