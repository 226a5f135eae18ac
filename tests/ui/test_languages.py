"""Languages: every file of texts matches the English one; pages are French; sessions differ."""

from __future__ import annotations

import ast
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.conftest import ROOT
from tests.ui.script_texts import script_texts
from ui.shell.focus import Focus, fit_language
from ui.shell.navigation import NO_SENTENCE, page_names, pages
from ui.words import texts as spoken_texts
from ui.words.glossary_terms import glossary, search, with_links
from ui.words.texts import common, languages, model_sentences, page_text, page_texts
from ui.words.translations import merge_over, placeholders, read_texts
from views.training.training_sections import SHOWN

WORDS = ROOT / "ui" / "words"
PAGES = page_names()
# Narrow before ; ! ? and %, and the ordinary no-break space before : and inside « », as French typography wants.
WRONG_SPACES = re.compile(r"[\w)»*`] [;:!?»](?:\s|$)|« |\xa0[;!?%]|\u202f[:»]|«\u202f")
SENTENCE = "the cat sat on the <b> $x$ </s>."


def files(code: str) -> dict[str, Path]:
    """Return all text files of one language by name."""
    of_pages = {path.parent.name: path for path in ROOT.glob(f"views/*/{code}.toml")}
    shared = {path.stem: path for path in sorted((WORDS / code).glob("*.toml"))}
    return shared | of_pages | {"figures": ROOT / "charts" / "words" / f"{code}.toml"}


def leaves(value: object, place: str = "") -> Iterator[tuple[str, object]]:
    """Yield every text with its path: ``section.key``, ``look_for[0]``, ``pair[2].label``."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        yield from leaves(inner, f"{place}.{key}".lstrip(".") if isinstance(value, dict) else f"{place}[{key}]")
    if not isinstance(value, dict | list):
        yield place, value


def own(path: Path) -> dict[str, object]:
    return dict(leaves(tomllib.loads(path.read_text(encoding="utf-8"))))


def is_formula(value: object) -> bool:
    """Return whether it is only LaTeX without words, which is the same in every language."""
    return isinstance(value, str) and "$" not in value and re.search(r"\\[a-zA-Z]", value) is not None


ENGLISH = {name: own(path) for name, path in files("en").items()}
ENGLISH["figures"] |= {f"browser.{text}": text for text in script_texts()}
FRENCH = {name: own(path) for name, path in files("fr").items()}
LESSONS = {code: sorted((ROOT / "lessons" / code).glob("*.toml")) for code in ("en", "fr")}


# ---- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(ENGLISH | FRENCH))
def test_french_has_what_english_has_and_asks_for_the_same(name: str) -> None:
    english, french = ENGLISH.get(name, {}), FRENCH.get(name, {})
    assert french.keys() <= english.keys(), "which English does not have"
    assert not [place for place, value in english.items() if place not in french and not is_formula(value)]
    for place, value in french.items():
        said = english[place]
        assert value.strip() and placeholders(value) == placeholders(said), place
        assert value.count("**") % 2 == 0 and value.count("`") == said.count("`"), place
        words = re.findall(r"[A-Za-z]{2,}", re.sub(r"\{[^{}]*\}", "", value))
        assert value != said or len(words) <= 3 or place.startswith("code_"), f"{place} is in English"


def test_french_typography_and_english_percents() -> None:
    """In French a no-break space stands before ; : ! ?, in English no space before a percent sign."""
    of_both = [ROOT / "lessons" / "routes.toml", *ROOT.glob("checkpoints/*/opening.toml")]
    of_both += ROOT.glob("transformer/files/packaged/*/opening.toml")
    french = [(path, own(path)) for path in (*files("fr").values(), *LESSONS["fr"], ROOT / "web" / "fr.toml")]
    french += [(path, {key: text for key, text in own(path).items() if re.search(r"\bfr\b", key)}) for path in of_both]
    english = [(path, own(path)) for path in (*files("en").values(), *LESSONS["en"])]
    wrong = [
        (path.parent.name, place, value)
        for found, pattern in ((french, WRONG_SPACES), (english, re.compile(r"[\d}*]\s%")))
        for path, texts in found
        for place, value in texts.items()
        if isinstance(value, str) and not place.startswith("code_") and not is_formula(value) and pattern.search(value)
    ]
    assert not wrong


def test_sentences_for_the_models_stand_in_one_file_with_plain_apostrophes() -> None:
    """The models have rarely read a typographic apostrophe: "L’animal" would be split into bytes."""
    said = [sentence for _, sentence in leaves(model_sentences())]
    for code in ("en", "fr"):
        places = [*own(files(code)["examples"]), *own(files(code)["compare"])]
        assert not [place for place in places if re.search(r"^default$|^pair\..*\.(first|second)$|\.sentence$", place)]
        for path in LESSONS[code]:
            said += [text for place, text in own(path).items() if re.search(r"\b(sentence|target|second)$", place)]
    assert all(sentence.strip() for sentence in said) and not [sentence for sentence in said if "’" in sentence]


def test_examples_show_what_they_promise() -> None:
    found = model_sentences()["example"]
    assert len(set(found.values())) == len(found) and model_sentences()["default"] in found.values()
    words = found["repeated"].lower().rstrip(".").split()
    assert len(set(words)) < len(words)
    assert any("Ѐ" <= character <= "ӿ" for character in found["alphabet"])
    assert any(ord(character) > 0xFFFF for character in found["emoji"])


# ---- the glossary ---------------------------------------------------------------------------------------------------


def test_the_glossary_has_every_term_in_both_languages_on_pages_that_there_are(in_language) -> None:
    for name, entry in tomllib.loads((WORDS / "glossary.toml").read_text(encoding="utf-8")).items():
        assert entry.keys() <= {"pages", "formula", "sources", "example", "en", "fr"}, name
        assert entry["pages"] and set(entry["pages"]) <= set(PAGES), name
        assert all(
            term and text.rstrip(")").endswith(".") and "'" not in text for term, text in (entry["en"], entry["fr"])
        )
        assert not WRONG_SPACES.search(" ".join(entry["fr"])), name
        assert all(paper and address.startswith("https://") for paper, address in entry.get("sources", ())), name
    assert {"sink", "rollout", "av", "lnp"} <= {term.key for term in glossary("attention")}
    english = {term.key: term.name for term in glossary("heads")}
    in_language("xx")
    assert {term.key: term.name for term in glossary("heads")} == english, "what a language lacks is shown in English"


def test_a_search_ignores_case_accents_and_language_and_the_first_use_is_linked(in_language) -> None:
    terms = glossary()
    assert [term.key for term in search(terms, "PUITS")] == ["sink"], "names count in every language"
    assert search(terms, "kobayashi")[0].key == "av", "authors count"
    assert search(terms, "token")[0].key == "token", "a name that begins with the query comes first"
    assert search(terms, "") == terms and search(terms, "no such term") == ()
    softmax, sink = (next(term for term in terms if term.key == key) for key in ("softmax", "sink"))
    first, second = with_links(["**sink**, `softmax`: the softmax, a softmax.", "Sinks and softmax."], [softmax, sink])
    assert first == (
        f'**sink**, `softmax`: the [softmax](glossary?glossary_search=Softmax "{softmax.definition}"), a softmax.'
    )
    assert second.startswith("[Sinks](glossary?glossary_search=Sink ") and second.endswith(") and softmax.")
    in_language("fr")
    assert "previous" in {term.key for term in search(glossary(), "tete precedent")}
    (linked,) = with_links(["Un puits."], [term for term in glossary("heads") if term.key == "sink"])
    assert "(glossary?glossary_search=Puits+%28sink%29&language=fr " in linked


# ---- a language beside English --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("english", "translated", "result"),
    [
        ("a {b}", "c {b}", "c {b}"),
        ("a {b}", "c", "a {b}"),
        ("a", "c {b}", "a"),
        (r"\text{in}\frac{a}{b}", r"\text{dans}\frac{a}{b}", r"\text{dans}\frac{a}{b}"),
        (r"\text{{in}} {x}", r"\text{{dans}} {x}", r"\text{{dans}} {x}"),
        (r"\text{{in}} {x}", r"\text{{dans}} {y}", r"\text{{in}} {x}"),
        ("a {b:,}", "c {b}", "a {b:,}"),
        ({"a": "b"}, "c", {"a": "b"}),
        ({"a": {"b": "c", "d": "e"}}, {"a": {"b": "f"}}, {"a": {"b": "f", "d": "e"}}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        (["a", "b"], ["c"], ["a", "b"]),
        ([{"a": "b", "c": "d"}], [{"a": "e"}], [{"a": "e", "c": "d"}]),
    ],
)
def test_a_translation_is_laid_over_english_only_where_it_fits(english: object, translated: object, result: object):
    assert merge_over(english, translated) == result


@pytest.fixture
def third(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return ``third("de", {"common": text})``, which adds a language to a copy of all texts."""
    for file in (*files("en").values(), *files("fr").values(), *WORDS.glob("*.toml")):
        copy = tmp_path / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    monkeypatch.setattr(spoken_texts, "ROOT", tmp_path)

    def add(code: str, contents: dict[str, str]) -> None:
        for name, content in contents.items():
            file = tmp_path / files("en")[name].relative_to(ROOT)
            file = file.parent.parent / code / file.name if file.parent.name == "en" else file.with_stem(code)
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(content.encode("utf-16" if content.startswith("\ufeff") else "utf-8"))

    return add


def test_a_language_may_be_half_translated(third, in_language) -> None:
    third("xx", {
        "common": '[language]\nname = "Xx"\n[sentence]\nname = "Xentence"\n[note]\nlayer = "{value}, {wrong}"\n',
        "masks": 'title = "Maxx"\nlook_for = ["one", "two"]\nundo = 3\n',
        "heads": 'title = "unclosed\n',
        "figures": '[shared]\nlayer_head = "{other}"\n',
    })  # fmt: skip
    third("yy", {"common": '[sidebar]\nsentence = "Y"\n'})
    third("zz", {"common": "\ufeff[language]\nname = 'Zz'\n"})
    english = {name: page_text(name) for name in ("masks", "heads", "surgery")}
    told, layer = common("sidebar.examples"), common("note.layer", value=9, last=1)
    in_language("xx")
    assert [*languages()] == ["en", "fr", "xx"], "a language without a name is none"
    assert (languages()["fr"], languages()["xx"], common("sentence.name")) == ("Français", "Xx", "Xentence")
    assert common("sidebar.examples") == told, "a key that is missing"
    assert common("note.layer", value=9, last=1) == layer, "other placeholders"
    masks = page_text("masks")
    assert (masks.title, masks["reset"], masks["undo"]) == ("Maxx", english["masks"]["reset"], english["masks"]["undo"])
    assert masks.look_for == english["masks"].look_for, "a list of another length"
    assert page_text("heads")["role"] == english["heads"]["role"], "a file that is no TOML is as good as missing"
    assert page_text("surgery").title == english["surgery"].title, "a file that is missing"
    assert read_texts(spoken_texts.ROOT, "figures", "xx")["shared"] == read_texts(ROOT, "figures", "en")["shared"]


def test_the_spoken_language_comes_first_and_one_that_is_not_there_becomes_english(in_language) -> None:
    masks = [read_texts(ROOT, "masks", code)["title"] for code in ("en", "fr")]
    assert [one.title for one in page_texts("masks")] == masks
    in_language("fr")
    assert [one.title for one in page_texts("masks")] == masks[::-1]
    focus, (note,) = fit_language(Focus(language="../en"))
    assert focus.language == "en" and "'../en'" in note
    assert fit_language(Focus(language="fr")) == (Focus(language="fr"), ())


def test_the_canvas_gets_its_words_in_french_and_none_in_english(in_language) -> None:
    from charts.canvas.figure import CanvasFigure
    from charts.toolkit.payload_bytes import unpack
    from ui.show.drawings import add_captions

    figure = CanvasFigure({"title": "t"}, {})
    assert add_captions(figure).packed() == figure.packed()
    in_language("fr")
    metadata, _ = unpack(add_captions(figure).packed())
    assert metadata["title"] == "t" and metadata["words"]["head {head}"] == FRENCH["figures"]["browser.head {head}"]


def test_streamlit_itself_keeps_nothing_in_the_address_and_no_text_that_was_read_once() -> None:
    """It would store labels as options; ``@st.cache_data`` says its text in the language of its first run."""
    for path in (path for name in ("ui", "views", "pages") for path in (ROOT / name).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
        assert not [call.lineno for call in calls if "bind" in {word.arg for word in call.keywords}], path
        assert "@st.cache_" not in source, path


# ---- pages ----------------------------------------------------------------------------------------------------------


def is_in(app: AppTest, code: str, page: str) -> None:
    assert not app.exception and not app.error, [error.value for error in app.error]
    spoken = read_texts(ROOT, page, code)
    assert app.title[0].value == spoken["title"]
    assert any(spoken["question"] in element.value for element in app.markdown)
    if page not in NO_SENTENCE:
        assert app.text_input(key="sentence").label == read_texts(ROOT, "common", code)["sentence"]["name"]
    assert app.segmented_control(key="sidebar language").value == code
    assert ("language" in app.query_params) is (code != "en")


def test_choosing_a_language_keeps_everything_else_and_other_sessions_as_they_are(open_app) -> None:
    app = open_app("positions", checkpoint="tiny-translator", layer="1", head="1", **{"positions view": "heatmap"})
    other = open_app("positions", checkpoint="tiny-translator", language="tlh")
    assert any("'tlh'" in caption.value for caption in other.caption)
    for code in ("fr", "en", "fr"):
        app.segmented_control(key="sidebar language").set_value(code).run()
        is_in(app, code, "positions")
        is_in(other.run(), "en", "positions")
        assert (app.session_state["focus"].layer, app.session_state["focus"].head) == (1, 1)
        assert app.session_state["positions view"] == "heatmap"


CHOICES = [  # page, parameter, code, and the keys of its label
    ("attention", "attention_step", "5", ("step", "5")),
    ("attention", "attention_show", "lines", ("show", "lines")),
    ("decoding", "decoding_section", "alignment", ("section", "alignment")),
    ("decoding", "strategy", "sampling", ("strategy", "sampling")),
    ("positions", "positions view", "waves", ("view", "waves")),
    ("masks", "masks view", "padding", ("view", "padding")),
]


@pytest.mark.slow
@pytest.mark.sample("made", "opened")
@pytest.mark.parametrize(("page", "parameter", "code", "keys"), CHOICES, ids=[choice[1] for choice in CHOICES])
@pytest.mark.parametrize(("made", "opened"), [("en", "fr"), ("fr", "en")])
def test_an_old_address_with_a_label_in_any_language_opens_its_choice(
    open_app, made: str, opened: str, page: str, parameter: str, code: str, keys: tuple[str, ...]
) -> None:
    label = read_texts(ROOT, page, made)
    for key in keys:
        label = label[key]
    app = open_app(page, checkpoint="tiny-translator", language=opened, **{parameter: label})
    assert not app.exception and not app.error
    assert app.segmented_control(key=parameter).value == code and app.query_params[parameter] in (code, [code])


def test_the_pages_of_the_navigation_are_kept_by_language_and_handed_out_as_copies() -> None:
    """Streamlit notes on a page that its run may draw it; outside a run no page can be drawn."""

    def script() -> None:
        import streamlit as st

        from ui.shell.navigation import pages
        from ui.words.texts import use_language

        for code in ("en", "fr", "en"):
            with use_language(code):
                mine, other = pages(), pages()
            assert all(mine[name] is not other[name] for name in mine)
            st.text(mine["overview"].title)

    pages()
    app = AppTest.from_function(script).run()
    assert not app.exception
    english, french = (read_texts(ROOT, "overview", code)["title"] for code in ("en", "fr"))
    assert [text.value for text in app.text] == [english, french, english]


def test_a_third_language_needs_two_small_files(third, open_app) -> None:
    third("de", {"common": '[language]\nname = "Deutsch"\n', "tokens": 'title = "Zeichen"\n'})
    app = open_app("tokens", checkpoint="tiny-translator", language="de")
    assert app.segmented_control(key="sidebar language").options == ["EN", "DE", "FR"]
    assert not app.exception and not app.error and app.title[0].value == "Zeichen"
    assert any(ENGLISH["tokens"]["question"] in element.value for element in app.markdown)


# ---- tables of pages and of figures ---------------------------------------------------------------------------------

FIGURES = {text: FRENCH["figures"].get(place, text) for place, text in ENGLISH["figures"].items()}
TEMPLATES = [  # one that begins with a placeholder would match everything
    re.compile(re.sub(r"\\\{\w+\\\}", ".+?", re.escape(french)), re.DOTALL)
    for french in FIGURES.values()
    if re.match(r"[^{]*[A-Za-z]{3}", french)
]
SECTIONS = [
    ("decoding", {"decoding_section": "strategies"}),
    ("decoding", {"decoding_section": "tree"}),
    ("decoding", {"decoding_section": "alignment"}),
    ("masks", {"masks_view": "padding"}),
    ("attention", {"attention_section": "trust"}),
]
TRANSLATOR = [(page, address, "translator") for page, address in [*((page, {}) for page in PAGES), *SECTIONS]]
CLASSIFIER = [(page, {}, "sentiment") for page in ("overview", "masks", "lens")]


def headings_and_cells(app: AppTest) -> set[str]:
    """Return all words of the tables of a page and of its figures, each of which has a switch for its own."""
    switches = [toggle for toggle in app.toggle if (toggle.key or "").startswith("as table ")]
    whole = [chart for chart in app.get("plotly_chart") if not chart.proto.id.endswith(" narrow")]  # not a phone's part
    figures, before = len(whole) + len(app.get("vega_lite_chart")), len(app.dataframe)
    for switch in switches:
        switch.set_value(True)
    app.run()
    assert not app.exception and not app.error and len(switches) == figures
    tables = [element.value for element in app.dataframe]
    assert len(tables) == before + figures and all(map(len, tables))
    words = [table.select_dtypes(exclude="number") for table in tables]
    words = [table.drop(columns=["text", "texte", "output", "sortie"], errors="ignore") for table in words]
    cells = {str(cell) for table in words for column in table for cell in table[column].dropna()}
    headings = {re.sub(r"^[xy]: ", "", str(heading)) for table in tables for heading in table}
    return {one for one in headings if not re.search(r"(?<!\S)·\w", one)} | {
        one for one in cells if re.search(r"[A-Za-z]{2,} [A-Za-z]{2,}", one) and not re.search(r"[·⟨<]|\d", one)
    }


@pytest.mark.slow
@pytest.mark.sample(of=8)
@pytest.mark.parametrize(("page", "address", "kind"), [*TRANSLATOR, *CLASSIFIER])
def test_a_page_and_what_its_tables_say_is_french(open_app, page: str, address: dict[str, str], kind: str) -> None:
    where = {"checkpoint": f"tiny-{kind}", "sentence": SENTENCE, **address}
    english = headings_and_cells(open_app(page, **where))
    app = open_app(page, language="fr", **where)
    is_in(app, "fr", page)
    shown = {element.value for element in (*app.markdown, *app.caption, *app.info, *app.warning)}
    assert not shown & {text for text in ENGLISH[page].values() if isinstance(text, str) and len(text) > 60}
    french = headings_and_cells(app)
    same = {one for one in english & french if re.search(r"[A-Za-z]{2}", one)} - {*FRENCH[page].values()}
    assert not [one for one in same if not any(template.fullmatch(one) for template in TEMPLATES)]
    assert not french & {text for text, translated in FIGURES.items() if text != translated} - {*FRENCH[page].values()}


def test_the_history_of_a_training_has_french_headings() -> None:
    history = pd.read_csv(ROOT / "checkpoints" / "en-fr" / "history.csv").rename(columns=SHOWN)
    assert len(history.columns) > 5 and not [name for name in history if name not in FIGURES]


def test_a_cell_without_a_number_is_empty() -> None:
    """Not "None", which Streamlit writes there in English."""

    def script() -> None:
        import pandas as pd

        from ui.show.figures import show_table

        show_table(pd.DataFrame({"a": [1.0, None]}), name="holes")

    (table,) = AppTest.from_function(script).run().dataframe
    assert table.proto.placeholder == "" and table.proto.HasField("placeholder")
