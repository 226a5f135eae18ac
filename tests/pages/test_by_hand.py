"""By hand: the sheet opens with every checkpoint and keeps the reader's changes in the address."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from tests.conftest import open_by_address
from tests.pages.conftest import chosen_texts, is_fine
from tests.triggers import trigger
from transformer.toy.by_hand import load_sheet


def sheet(app: AppTest) -> dict:
    """What the component in the browser is sent."""
    (found,) = [
        element for element in app if element.type == "bidi_component" and element.proto.id.endswith("-by hand")
    ]
    return json.loads(found.proto.json)


@pytest.mark.parametrize("checkpoint", ["tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"])
def test_the_sheet_is_there_whatever_is_loaded(open_app: Callable[..., AppTest], checkpoint: str) -> None:
    app = open_app("by_hand", checkpoint=checkpoint)
    is_fine(app)
    data = sheet(app)
    assert data["parameters"] == {name: numbers.tolist() for name, numbers in load_sheet().parameters.items()}
    assert [data["vocabulary"][word] for word in data["opening"]] == ["the", "cat", "sat", "on", "the"]
    assert data["steps"]["weights"]["file"] == "transformer/attention.py"
    assert data["steps"]["weights"]["link"].endswith("Attention")
    assert not data["brought"]


def test_a_change_is_kept_in_the_address_and_is_no_news_to_the_sheet(open_app: Callable[..., AppTest]) -> None:
    app = open_app("by_hand")
    sent = {"words": "0.2.3", "heads": "2", "cells": "WQ.0.1:0.5_nonsense", "step": "8"}
    trigger(app, "by hand", "state", sent)
    is_fine(app)
    assert chosen_texts(app, "hand_words") == ("0.2.3",)
    assert chosen_texts(app, "hand_heads") == ("2",)
    assert chosen_texts(app, "hand_cells") == ("WQ.0.1:0.5",)
    assert chosen_texts(app, "hand_step") == ("8",)
    kept = {"words": "0.2.3", "heads": "2", "cells": "WQ.0.1:0.5", "step": "8"}
    assert sheet(app)["state"] == kept and not sheet(app)["brought"]
    trigger(app, "by hand", "state", {"words": 7, "heads": None, "step": "<b>"})
    is_fine(app)
    assert not chosen_texts(app, "hand_words") and not chosen_texts(app, "hand_cells")
    assert not chosen_texts(app, "hand_step")


def test_an_address_brings_a_sheet(open_app: Callable[..., AppTest]) -> None:
    app = open_by_address("by_hand", {"hand_words": "0.1.4.0", "hand_cells": "E.0.0:2", "hand_step": "sheet"})
    is_fine(app)
    assert sheet(app)["state"] == {"words": "0.1.4.0", "heads": "", "cells": "E.0.0:2", "step": "sheet"}


def test_a_table_opens_its_page(open_app: Callable[..., AppTest]) -> None:
    app = open_app("by_hand")
    trigger(app, "by hand", "opened", "nowhere")
    is_fine(app)
    assert app.title[0].value == "By hand"


def test_the_sheet_speaks_french(open_app: Callable[..., AppTest]) -> None:
    app = open_app("by_hand", language="fr")
    is_fine(app)
    data = sheet(app)
    assert data["language"] == "fr" and data["vocabulary"][6] == "tapis" and data["texts"]["undo"] == "Annuler"
    assert not [name for name, text in data["texts"].items() if not text]


def test_the_sheet_is_printed(open_app: Callable[..., AppTest]) -> None:
    app = open_app("by_hand")
    assert "by hand sheet" in {element.proto.id.rpartition("-")[2] for element in app.get("download_button")}
