"""By hand: the sheet opens with every checkpoint, is kept in the address, and is printed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from tests.conftest import ROOT
from tests.pages.conftest import chosen_texts, is_fine
from tests.triggers import trigger
from transformer.toy.by_hand import SheetChoices, load_sheet, numbers_of
from ui.shell.navigation import GROUPS
from ui.words.texts import page_text, use_language
from views.by_hand.by_hand_sections import STEPS, line_of, paper


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


OPENING = SheetChoices.from_texts(words="", heads="", cells="")


def test_an_address_becomes_a_sheet_and_an_address_again() -> None:
    texts = {"words": "0.1.4.0", "heads": "2", "cells": "WQ.0.1:0.5_E.3.2:-1_P.4.0:0.25"}
    choices = SheetChoices.from_texts(**texts)
    assert choices.words == (0, 1, 4, 0) and choices.n_heads == 2
    assert choices.cells == {("WQ", 0, 1): 0.5, ("E", 3, 2): -1.0, ("P", 4, 0): 0.25}
    assert choices.to_texts() == texts
    sheet = load_sheet().edited(choices.cells, n_heads=choices.n_heads)
    assert sheet.parameters["WQ"][0, 1] == 0.5 and sheet.parameters["P"][4, 0] == 0.25
    assert OPENING.to_texts() == {"words": "", "heads": "", "cells": ""}


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        ({"words": "0.99.x.1", "heads": "7", "cells": ""}, {"words": "0.1", "heads": "", "cells": ""}),
        ({"words": "0.1.2.3.4.5.6", "heads": "", "cells": ""}, {"words": "0.1.2.3.4", "heads": "", "cells": ""}),
        ({"words": "²", "heads": "", "cells": "WQ.9.0:1_Z.0.0:1_WQ.0.0:1e9_WQ.0.0:99_<b>"}, OPENING.to_texts()),
        ({"words": "", "heads": "", "cells": "WQ.1.0:0.5"}, OPENING.to_texts()),  # the number that is stored there
    ],
)
def test_what_the_sheet_does_not_have_is_left_out(texts: dict[str, str], kept: dict[str, str]) -> None:
    assert SheetChoices.from_texts(**texts).to_texts() == kept


def test_every_table_leads_to_a_line_of_code_and_a_page() -> None:
    names = {entry.name for group in GROUPS.values() for entry in group}
    for name, step in STEPS.items():
        file, line, code = line_of(step)
        written = (ROOT / file).read_text(encoding="utf-8").splitlines()[line - 1]
        assert code in written and step.line in written, name
        assert step.page in names


def test_the_tables_of_the_script_have_code_and_texts() -> None:
    script = (ROOT / "charts/canvas/source/by_hand/blocks.js").read_text(encoding="utf-8")
    tables = set(re.findall(r'(?:plain|weight|perHead)\("(\w+)"', script)) | {"Q", "K", "V", "WQ", "WK", "WV", "onehot"}
    tables |= {f"{name}{number}" for name in ("mean", "g") for number in (1, 2)}
    assert tables == STEPS.keys()
    for language in ("en", "fr"):
        with use_language(language):
            text = page_text("by_hand")
        named = {name if not name.startswith("W") else "W" for name in tables}
        assert all(f"sheet_{kind}_{name}" in text for name in named for kind in ("name", "about"))


def written(html: str, kind: str) -> list[str]:
    return re.findall(rf"<td class={kind}>([^<]*)</td>", html)


@pytest.mark.parametrize("heads", ["", "2"])
def test_only_the_rows_of_the_last_word_are_blank(heads: str) -> None:
    choices = SheetChoices.from_texts(words="", heads=heads, cells="WQ.0.1:0.75")
    html, numbers = paper(choices, text=page_text("by_hand")), numbers_of(choices)
    per_head = [f"{name}{head}" for name in ("products", "scores", "weights") for head in range(choices.n_heads)]
    names = ["x", "Q", "K", "V", *per_head, "context", "out", "sum1", "mean1", "std1", "norm1", "pre", "hidden", "ff"]
    names += ["sum2", "mean2", "std2", "norm2", "logits", "probabilities"]
    assert written(html, "blank") == [""] * sum(numbers[name].shape[1] for name in names)
    first = f"{round(float(numbers['x'][0, 0]), 2) + 0.0:.2f}".replace("-", "−")
    assert "0.75" in written(html, "given") and f"<td>{first}</td>" in html
    assert html.count('class="numbers"') == 1 and "http" not in html.partition("<body")[2]
