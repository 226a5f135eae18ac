"""The view model of By hand: the sheet of an address, the code of its tables, the printed sheets."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.conftest import ROOT
from transformer.toy.by_hand import load_sheet
from ui.shell.navigation import GROUPS
from ui.words.texts import page_text, use_language
from views.by_hand.by_hand_view_model import STEPS, ByHandViewModel, SheetChoices
from views.by_hand.papers import CHANGES, papers, varied
from views.by_hand.sheet_in_browser import line_of

OPENING = SheetChoices.from_texts(words="", heads="", cells="")


def test_an_address_becomes_a_sheet_and_an_address_again() -> None:
    texts = {"words": "0.1.4.0", "heads": "2", "cells": "WQ.0.1:0.5_E.3.2:-1_P.4.0:0.25"}
    choices = SheetChoices.from_texts(**texts)
    assert choices.words == (0, 1, 4, 0) and choices.n_heads == 2
    assert choices.cells == {("WQ", 0, 1): 0.5, ("E", 3, 2): -1.0, ("P", 4, 0): 0.25}
    assert choices.to_texts() == texts
    sheet = ByHandViewModel(choices).sheet
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


def test_the_words_have_the_language_of_the_reader() -> None:
    view_model = ByHandViewModel(OPENING)
    assert view_model.next_word("en") == "mat" and view_model.next_word("fr") == "tapis"
    assert view_model.vocabulary("xx") == view_model.vocabulary("en")


def written(html: str, kind: str) -> list[str]:
    return re.findall(rf"<td class={kind}>([^<]*)</td>", html)


@pytest.mark.parametrize("heads", ["", "2"])
def test_the_solutions_are_the_numbers_of_the_model(heads: str) -> None:
    choices = SheetChoices.from_texts(words="", heads=heads, cells="")
    text = page_text("by_hand")
    blank, solved = (papers(choices, [7], solved=key, text=text) for key in (False, True))
    numbers = ByHandViewModel(varied(choices, 7)).numbers
    per_head = [f"{name}{head}" for name in ("products", "scores", "weights") for head in range(choices.n_heads)]
    order = ["x", "Q", "K", "V", *sorted(per_head, key=lambda name: ("psw".index(name[0]), name)), "context", "out"]
    order += ["sum1", "mean1", "std1", "norm1", "pre", "hidden", "ff", "sum2", "mean2", "std2", "norm2", "logits"]
    right = [
        f"{round(float(value), 2) + 0.0:.2f}".replace("-", "−")
        for name in [*order, "probabilities"]
        for value in numbers[name][-1]
    ]
    assert written(solved, "answer") == right
    assert written(blank, "blank") == [""] * len(right)
    assert not written(blank, "answer") and not written(solved, "blank")
    assert written(blank, "given") == written(solved, "given")


def test_every_student_has_numbers_of_their_own() -> None:
    parameters = [ByHandViewModel(varied(OPENING, seed)).sheet.parameters for seed in (1, 1, 2)]
    assert all(np.array_equal(parameters[0][name], parameters[1][name]) for name in parameters[0])
    assert any(not np.array_equal(parameters[0][name], parameters[2][name]) for name in parameters[0])
    stored = load_sheet().parameters
    assert sum(int((parameters[0][name] != stored[name]).sum()) for name in stored) == CHANGES
    file = papers(OPENING, range(1, 31), solved=False, text=page_text("by_hand"))
    assert file.count('class="numbers"') == 30 and "http" not in file.partition("<body")[2]
