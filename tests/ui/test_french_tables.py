"""French pages and tables: headings and words in cells, of tables on pages and of figures as tables."""

from __future__ import annotations

import re
from collections.abc import Callable

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.ui.test_languages import is_french
from ui.shell.navigation import GROUPS
from ui.words.texts import ROOT
from ui.words.translations import read_texts
from views.training.training_sections import SHOWN

PAGES = [entry.name for group in GROUPS.values() for entry in group if entry.exists]
SENTENCE = "the cat sat on the <b> $x$ </s>."
SIDE = re.compile(r"^[xy]: ")  # the prefix of an axis title
ANSWERS = ["text", "texte", "output", "sortie"]
LETTERS = re.compile(r"^[^{]*[A-Za-z]{3}")  # a template that begins with a placeholder would match everything
FRENCH = {
    text: read_texts(ROOT, "figures", "fr")[section][key]
    for section, found in read_texts(ROOT, "figures", "en").items()
    for key, text in found.items()
}
TOKEN = re.compile(r"(?<!\S)·\w")  # as in the heading of a pair of tokens
NOT_WORDS = re.compile(r"[·⟨<]|\d")  # a token, a name in the code, a number


def tables(app: AppTest) -> list[pd.DataFrame]:
    """Return the tables of a page and of its figures, each of which has a switch for its own."""
    switches = [toggle for toggle in app.toggle if (toggle.key or "").startswith("as table ")]
    whole = [chart for chart in app.get("plotly_chart") if not chart.proto.id.endswith(" narrow")]  # not a phone's part
    figures, before = len(whole) + len(app.get("vega_lite_chart")), len(app.dataframe)
    assert len(switches) == figures
    for switch in switches:
        switch.set_value(True)
    app.run()
    assert not app.exception and not app.error
    assert len(app.dataframe) == before + figures and all(len(table.value) for table in app.dataframe)
    return [element.value for element in app.dataframe]


def headings(found: list[pd.DataFrame]) -> set[str]:
    named = {SIDE.sub("", str(heading)) for table in found for heading in table}
    return {heading for heading in named if re.search(r"[A-Za-z]{2}", heading) and not TOKEN.search(heading)}


def cells(found: list[pd.DataFrame]) -> set[str]:
    """Return the contents of word columns; not of columns with the model's output."""
    texts = (table.select_dtypes(exclude="number").drop(columns=ANSWERS, errors="ignore") for table in found)
    return {str(cell) for table in texts for column in table for cell in table[column].dropna()}


def phrases(found: list[pd.DataFrame]) -> set[str]:
    """Return the words in a cell, without tokens and numbers."""
    return {
        cell for cell in cells(found) if re.search(r"[A-Za-z]{2,} [A-Za-z]{2,}", cell) and not NOT_WORDS.search(cell)
    }


def expression(template: str) -> re.Pattern[str]:
    """Return an expression for every sentence made from a template."""
    return re.compile(re.sub(r"\\\{\w+\\\}", ".+?", re.escape(template)), re.DOTALL)


SECTIONS = [
    ("decoding", {"decoding_section": "strategies"}),
    ("decoding", {"decoding_section": "tree"}),
    ("decoding", {"decoding_section": "alignment"}),
    ("masks", {"masks_view": "padding"}),
    ("attention", {"attention_section": "trust"}),
]


CLASSIFIER = [(page, {}, "sentiment") for page in ("overview", "masks", "lens")]
TRANSLATOR = [(page, address, "translator") for page, address in [*((page, {}) for page in PAGES), *SECTIONS]]


@pytest.mark.slow
@pytest.mark.parametrize(("page", "address", "kind"), [*TRANSLATOR, *CLASSIFIER])
def test_a_page_and_what_its_tables_say_is_french(
    open_app: Callable[..., AppTest], page: str, address: dict[str, str], kind: str
) -> None:
    where = {"checkpoint": f"tiny-{kind}", "sentence": SENTENCE, **address}
    opened = {code: open_app(page, language=code, **where) for code in ("en", "fr")}
    is_french(opened["fr"], page)
    shown = {code: tables(app) for code, app in opened.items()}
    known = [expression(template) for template in FRENCH if LETTERS.search(template)]
    texts = read_texts(ROOT, page, "fr")
    own = {text for text in (*texts.values(), *texts.get("column", {}).values()) if isinstance(text, str)}

    def unknown(words: str) -> bool:
        return not any(template.fullmatch(words) for template in known)

    assert not set(filter(unknown, headings(shown["en"]) & headings(shown["fr"]))) - own
    assert not set(filter(unknown, phrases(shown["en"]) & phrases(shown["fr"]))) - own
    english = {word for word, french in FRENCH.items() if word != french}
    assert not {text for text in cells(shown["fr"]) | headings(shown["fr"]) if text in english} - own


def test_the_history_of_a_training_has_french_headings() -> None:
    history = pd.read_csv(ROOT / "checkpoints" / "en-fr" / "history.csv").rename(columns=SHOWN)
    assert len(history.columns) > 5 and not [name for name in history if name not in FRENCH]


def test_a_cell_without_a_number_is_empty() -> None:
    """Not "None", which Streamlit writes there in English."""

    def script() -> None:
        import pandas as pd

        from ui.show.figures import show_table

        show_table(pd.DataFrame({"a": [1.0, None]}), name="holes")

    app = AppTest.from_function(script).run()
    assert not app.exception and app.dataframe[0].proto.placeholder == ""
    assert app.dataframe[0].proto.HasField("placeholder")
