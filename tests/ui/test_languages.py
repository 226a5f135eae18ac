"""Languages: every folder of texts matches the English one, which fills gaps; sessions differ."""

from __future__ import annotations

import ast
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import choose_text
from tests.ui.script_texts import script_texts
from ui.shell.focus import Focus, fit_language
from ui.shell.navigation import GROUPS, NO_SENTENCE, pages
from ui.shell.share import BUTTON
from ui.words import texts as spoken_texts
from ui.words.glossary_terms import glossary, search, with_links
from ui.words.texts import common, examples, language, languages, model_sentences, page_text, page_texts
from ui.words.translations import SHARED, merge_over, placeholders, read_texts

ROOT = Path(__file__).resolve().parents[2]
FRAME = ROOT / "ui" / "words"
VIEWS = ROOT / "views"


def files(code: str) -> dict[str, Path]:
    """Return all text files of one language by name."""
    of_pages = {path.parent.name: path for path in VIEWS.glob(f"*/{code}.toml")}
    figures = {"figures": ROOT / "charts" / "words" / f"{code}.toml"}
    return {path.stem: path for path in sorted((FRAME / code).glob("*.toml"))} | of_pages | figures


ENGLISH = {name: tomllib.loads(path.read_text(encoding="utf-8")) for name, path in files("en").items()}
ENGLISH["figures"]["browser"] = {text: text for text in script_texts()}
FRENCH = files("fr")
LESSONS = sorted((ROOT / "lessons" / "fr").glob("*.toml"))
OPENINGS = sorted([*ROOT.glob("checkpoints/*/opening.toml"), *ROOT.glob("transformer/files/packaged/*/opening.toml")])
PAGES = [entry.name for group in GROUPS.values() for entry in group if entry.exists]
# Narrow before ; ! ? and %, and the ordinary no-break space before : and inside « », as French typography wants.
NARROW_SPACES = re.compile(r"[\w)»*`] [;:!?»](?:\s|$)|« |\xa0[;!?%]|\u202f[:»]|«\u202f")


def leaves(value: object, place: str = "") -> Iterator[tuple[str, object]]:
    """Yield every text with its path: ``section.key``, ``look_for[0]``, ``pair[2].label``."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{place}.{key}".lstrip("."))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{place}[{index}]")
    else:
        yield place, value


def is_formula(value: object) -> bool:
    """Return whether it is only LaTeX without words, which is the same in every language."""
    return isinstance(value, str) and "$" not in value and re.search(r"\\[a-zA-Z]", value) is not None


def own(path: Path) -> dict[str, object]:
    return dict(leaves(tomllib.loads(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("name", FRENCH)
def test_a_translation_says_nothing_that_english_does_not_ask_for(name: str) -> None:
    assert name in ENGLISH, f"there is no English file {name}"
    english = dict(leaves(ENGLISH[name]))
    assert own(FRENCH[name]).keys() <= english.keys()
    for place, value in own(FRENCH[name]).items():
        assert isinstance(value, str) and value.strip(), place
        assert placeholders(value) == placeholders(english[place]), place
        assert value.count("**") % 2 == 0 and value.count("`") == english[place].count("`"), place


def test_french_is_complete() -> None:
    missing = []
    for name, values in ENGLISH.items():
        french = own(FRENCH[name]) if name in FRENCH else {}
        missing += [
            f"{name}: {place}" for place, value in leaves(values) if place not in french and not is_formula(value)
        ]
    assert not missing, "the French texts lack what the English ones have: " + "; ".join(missing)


def test_french_is_french() -> None:
    """Texts that are equal in both languages are names, symbols, sentences for models, or code."""
    same = [
        f"{name}: {place}"
        for name in FRENCH
        for place, value in own(FRENCH[name]).items()
        if value == dict(leaves(ENGLISH[name]))[place]
        and len(re.findall(r"[A-Za-z]{2,}", re.sub(r"\{[^{}]*\}", "", value))) > 3
        and not re.search(r"^code_", place)
    ]
    assert not same


FRENCH_FILES = [*FRENCH.values(), *LESSONS, *OPENINGS, ROOT / "lessons" / "routes.toml", ROOT / "web" / "fr.toml"]


@pytest.mark.parametrize("path", FRENCH_FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_french_typography(path: Path) -> None:
    """An ordinary space before ; : ! ? or inside « » would allow a line break."""
    of_both = {*OPENINGS, ROOT / "lessons" / "routes.toml"}
    for place, value in own(path).items():
        if path in of_both and not re.search(r"\bfr\b", place):
            continue
        if isinstance(value, str) and not place.startswith("code_") and not is_formula(value):
            assert not NARROW_SPACES.search(value), f"{place}: {value}"


ENGLISH_LESSONS = [tomllib.loads(path.read_text("utf-8")) for path in sorted((ROOT / "lessons" / "en").glob("*.toml"))]


@pytest.mark.parametrize("texts", [*ENGLISH.values(), *ENGLISH_LESSONS])
def test_a_percent_sign_follows_its_number_without_a_space_in_english(texts: dict) -> None:
    """Numbers in the texts are written as ``charts.toolkit.numbers.percent`` writes computed ones."""
    for place, value in leaves(texts):
        if isinstance(value, str) and not is_formula(value):
            assert not re.search(r"[\d}*]\s%", value), f"{place}: {value}"


def test_sentences_for_the_models_stand_in_one_file_with_plain_apostrophes() -> None:
    """The models have rarely read a typographic apostrophe: "L’animal" would be split into bytes."""
    for place, sentence in leaves(model_sentences()):
        assert "’" not in sentence and sentence.strip(), place
    for code in ("en", "fr"):
        places = [*own(files(code)["examples"]), *own(files(code)["compare"])]
        assert not [place for place in places if re.search(r"^default$|^pair\..*\.(first|second)$|\.sentence$", place)]
        for path in (ROOT / "lessons" / code).glob("*.toml"):
            lesson = tomllib.loads(path.read_text(encoding="utf-8"))
            focuses = [lesson.get("focus", {}), *(step.get("focus", {}) for step in lesson["step"])]
            said = [str(focus.get(name, "")) for focus in focuses for name in ("sentence", "target")]
            assert not [one for one in (*said, *(str(step.get("second", "")) for step in lesson["step"])) if "’" in one]


def test_the_glossary_has_every_term_in_both_languages_on_pages_that_there_are(in_language: Callable) -> None:
    entries = tomllib.loads((FRAME / "glossary.toml").read_text(encoding="utf-8"))
    for name, entry in entries.items():
        assert entry.keys() <= {"pages", "formula", "sources", "example", "en", "fr"}, name
        assert set(entry["pages"]) <= set(PAGES) and entry["pages"], name
        for code in ("en", "fr"):
            term, definition = entry[code]
            assert term and definition.rstrip(")").endswith(".") and "'" not in definition, name
        assert not NARROW_SPACES.search(" ".join(entry["fr"])), name
        assert all(paper and address.startswith("https://") for paper, address in entry.get("sources", ())), name
    expected = {"attention": {"sink", "rollout", "av", "lnp"}, "surgery": {"kl", "lnp"}}
    for page, keys in expected.items():
        assert keys <= {term.key for term in glossary(page)}
    in_language("fr")
    assert "Puits (sink)" in [term.name for term in glossary("heads")]
    in_language("xx")
    assert "Sink" in [term.name for term in glossary("heads")], "what a language lacks is shown in English"


def test_a_glossary_search_ignores_case_accents_and_language(in_language: Callable) -> None:
    terms = glossary()
    assert [term.key for term in search(terms, "PUITS")] == ["sink"], "names count in every language"
    assert search(terms, "kobayashi")[0].key == "av", "authors count"
    assert search(terms, "token")[0].key == "token", "a name that begins with the query comes first"
    assert search(terms, "") == terms and search(terms, "no such term") == ()
    in_language("fr")
    assert "previous" in {term.key for term in search(glossary(), "tete precedent")}


def test_the_first_use_of_a_term_links_to_its_entry(in_language: Callable) -> None:
    terms = [term for term in glossary("attention") if term.key in ("softmax", "sink")]
    first, second = with_links(["A **sink** and `softmax`: the softmax of a row.", "Sinks and softmax again."], terms)
    definition = next(term.definition for term in terms if term.key == "softmax")
    assert first == (
        f'A **sink** and `softmax`: the [softmax](glossary?glossary_search=Softmax "{definition}") of a row.'
    )
    assert second.startswith("[Sinks](glossary?glossary_search=Sink ") and second.endswith(") and softmax again.")
    in_language("fr")
    (linked,) = with_links(["Un puits."], [term for term in glossary("heads") if term.key == "sink"])
    assert "(glossary?glossary_search=Puits+%28sink%29&language=fr " in linked


def test_the_languages_there_are() -> None:
    found = languages()
    assert next(iter(found.items())) == ("en", "English")
    assert found["fr"] == "Français"
    assert language() == "en", "outside of a session"


@pytest.fixture
def in_language(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Run everything in this language."""
    return lambda code: monkeypatch.setattr(spoken_texts, "_language_of_run", lambda: code)


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of all texts that a test may change."""
    for code in ("en", "fr"):
        for file in files(code).values():
            copy = tmp_path / file.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
    for name in ("sentences.toml", "glossary.toml"):
        shutil.copy(FRAME / name, tmp_path / "ui" / "words")
    monkeypatch.setattr(spoken_texts, "ROOT", tmp_path)
    return tmp_path


def add_language(texts: Path, code: str, **files: str) -> None:
    for name, content in files.items():
        shared = name in SHARED
        file = texts / "ui" / "words" / code / f"{name}.toml" if shared else texts / "views" / name / f"{code}.toml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(content, encoding="utf-8")


def test_a_language_may_be_half_translated(texts: Path, in_language: Callable) -> None:
    add_language(
        texts,
        "xx",
        common='[language]\nname = "Xx"\n[sentence]\nname = "Xentence"\n[note]\nlayer = "{value}, {wrong}"\n',
        masks='title = "Maxx"\nlook_for = ["one", "two"]\nundo = 3\n',
        heads='[scope]\nsentence = "xentence"\n[role]\nsink = { name = "xink" }\n',
        examples='[[example]]\nlabel = "Xx"\n',
    )
    in_language("xx")
    english = page_text("masks")
    assert languages()["xx"] == "Xx"
    assert common("sentence.name") == "Xentence"
    assert common("sidebar.examples") == "Examples", "a key that is missing"
    assert common("note.layer", value=9, last=1).startswith("There is no layer 9"), "other placeholders"
    assert (english.title, english["reset"], english["undo"]) == ("Maxx", "Reset", "Undo")
    assert len(english.look_for) == 3, "a list of another length"
    assert page_text("heads")["scope"] == {**ENGLISH["heads"]["scope"], "sentence": "xentence"}
    assert page_text("heads")["role"]["sink"] == {**ENGLISH["heads"]["role"]["sink"], "name": "xink"}
    assert page_text("surgery").title == "Surgery", "a file that is missing"
    assert len(examples()) == len(ENGLISH["examples"])


def test_a_file_that_is_no_toml_is_as_good_as_missing(texts: Path, in_language: Callable) -> None:
    add_language(texts, "xx", common='[language]\nname = "Xx"\n', masks='title = "unclosed\n')
    in_language("xx")
    assert page_text("masks").title == "Masks"
    (texts / "ui" / "words" / "xx" / "common.toml").write_bytes(b"\xff\xfe")
    assert "xx" not in languages()


def test_a_folder_without_a_name_is_no_language(texts: Path) -> None:
    add_language(texts, "yy", common='[sidebar]\nsentence = "Y"\n')
    add_language(texts, "zz", masks='title = "Z"\n')
    assert list(languages()) == ["en", "fr"]


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


def test_the_spoken_language_comes_first(in_language: Callable) -> None:
    assert [one.title for one in page_texts("masks")] == ["Masks", "Masques"]
    in_language("fr")
    assert [one.title for one in page_texts("masks")] == ["Masques", "Masks"]


def test_a_language_that_is_not_there_is_said_and_becomes_english() -> None:
    focus, notes = fit_language(Focus(language="../en"))
    assert focus.language == "en"
    assert notes == ("There is no translation into the language '../en' (available: en, fr); showing English.",)
    assert fit_language(Focus(language="fr")) == (Focus(language="fr"), ())
    assert Focus(language="fr").to_address(default=Focus()) == {"language": "fr"}


def is_in(app: AppTest, code: str, page: str) -> None:
    assert not app.exception and not app.error, [error.value for error in app.error]
    spoken = read_texts(ROOT, page, code)
    assert app.title[0].value == spoken["title"]
    assert any(spoken["question"] in element.value for element in app.markdown)
    if page not in NO_SENTENCE:
        assert app.text_input(key="sentence").label == read_texts(ROOT, "common", code)["sentence"]["name"]
    assert app.segmented_control(key="sidebar language").value == code


def is_french(app: AppTest, page: str) -> None:
    """Check a page that is open in French; tests/ui/test_french_tables.py does so for every page."""
    is_in(app, "fr", page)
    assert "fr" in app.query_params["language"]
    english = {value for place, value in leaves(ENGLISH[page]) if len(value) > 60}
    shown = [element.value for element in (*app.markdown, *app.caption, *app.info, *app.warning)]
    assert not english & set(shown)


def test_choosing_a_language_keeps_everything_else(open_app: Callable[..., AppTest]) -> None:
    app = open_app("masks", checkpoint="tiny-translator", layer="1", head="1")
    choose_text(app, "masks view", "padding")
    app.run()
    app.segmented_control(key="sidebar language").set_value("fr").run()
    is_in(app, "fr", "masks")
    assert (app.session_state["focus"].layer, app.session_state["focus"].head) == (1, 1)
    assert app.session_state["masks view"] == "padding"
    offered = app.sidebar.menu_button(key="sidebar example").options
    assert [each.split("**")[1] for each in offered][:2] == ["Simple", "Répétition"]
    app.segmented_control(key="sidebar language").set_value("en").run()
    is_in(app, "en", "masks")
    assert "language" not in app.query_params


def test_an_unknown_language_in_the_address(open_app: Callable[..., AppTest]) -> None:
    app = open_app(PAGES[0], language="tlh")
    is_in(app, "en", PAGES[0])
    assert any("no translation into the language 'tlh'" in caption.value for caption in app.caption)
    assert "language" not in app.query_params


def test_what_the_address_has_wrong_is_said_in_its_language(open_app: Callable[..., AppTest]) -> None:
    app = open_app(PAGES[0], language="fr", layer="two")
    assert any("n’est pas un nombre entier" in caption.value for caption in app.caption)


def test_a_choice_made_in_one_language_is_the_same_in_another(open_app: Callable[..., AppTest]) -> None:
    """An old address may contain labels; addresses written now contain codes."""
    for made, words in (("fr", read_texts(ROOT, "attention", "fr")), ("en", ENGLISH["attention"])):
        for opened in ("fr", "en"):
            step, drawing = words["steps"][4], words["show_lines"]
            asked = {"attention_step": step, "attention_show": drawing}
            app = open_app("attention", checkpoint="tiny-translator", language=opened, **asked)
            spoken = read_texts(ROOT, "attention", opened)
            shown = {group.key: group for group in app.segmented_control}
            assert shown["attention_step"].value == 5 and shown["attention_step"].options == spoken["steps"], made
            assert shown["attention_show"].value == "lines" and spoken["show_lines"] in shown["attention_show"].options
            assert "5" in app.query_params["attention_step"] and "lines" in app.query_params["attention_show"]


CHOICES = [  # page, parameter, code, and its label in a language
    ("attention", "attention_step", "5", lambda text: text["steps"][4]),
    ("attention", "attention_show", "lines", lambda text: text["show_lines"]),
    ("decoding", "decoding_section", "alignment", lambda text: text["section"]["alignment"]),
    ("decoding", "strategy", "sampling", lambda text: text["strategy"]["sampling"]),
    ("positions", "positions view", "waves", lambda text: text["view_waves"]),
    ("masks", "masks view", "padding", lambda text: text["view"]["padding"]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("page", "parameter", "code", "word"), CHOICES, ids=[choice[1] for choice in CHOICES])
@pytest.mark.parametrize("language", ["en", "fr"])
def test_the_address_and_a_shared_link_hold_codes(
    open_app: Callable[..., AppTest], language: str, page: str, parameter: str, code: str, word: Callable
) -> None:
    """A link made from an address with labels, in either language, opens the same choice."""

    def opened(asked: str) -> AppTest:
        return open_app(page, checkpoint="tiny-translator", language=language, **{parameter: asked})

    choices = []
    for asked in (word(read_texts(ROOT, page, language)), word(ENGLISH[page]), code):
        app = opened(asked)
        app.session_state[BUTTON] = True
        app.run()
        assert not app.exception and not app.error
        link = next(found.value for found in app.code if "fingerprint=" in found.value)
        assert parse_qs(urlsplit(link).query)[parameter] == [code]
        assert app.query_params[parameter] in (code, [code])
        choices.append(app.segmented_control(key=parameter).value)
    assert len(set(choices)) == 1 and str(choices[0]) == code


def test_streamlit_itself_keeps_nothing_in_the_address() -> None:
    """Streamlit would store labels as options and write the address at other moments than we do."""
    for path in (path for name in ("ui", "views", "pages") for path in (ROOT / name).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                assert "bind" not in {word.arg for word in node.keywords}, f"{path}:{node.lineno}"


@pytest.mark.parametrize("asked", ["strategies", "Stratégies", "Strategies"])
def test_a_section_is_found_by_its_name_in_any_language(open_app: Callable[..., AppTest], asked: str) -> None:
    app = open_app("decoding", checkpoint="tiny-translator", decoding_section=asked)
    assert app.segmented_control(key="decoding_section").value == "strategies"
    app.segmented_control(key="sidebar language").set_value("fr").run()
    assert app.segmented_control(key="decoding_section").value == "strategies"


def test_sessions_do_not_mix(open_app: Callable[..., AppTest]) -> None:
    french = open_app("lens", checkpoint="tiny-translator", language="fr")
    english = open_app("lens", checkpoint="tiny-translator")
    for _ in range(2):
        is_in(french.run(), "fr", "lens")
        is_in(english.run(), "en", "lens")
    english.segmented_control(key="sidebar language").set_value("fr").run()
    french.segmented_control(key="sidebar language").set_value("en").run()
    is_in(english.run(), "fr", "lens")
    is_in(french.run(), "en", "lens")


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
    assert [text.value for text in app.text] == ["Overview", "Vue d’ensemble", "Overview"]


def test_a_third_language_needs_two_small_files(texts: Path, open_app: Callable[..., AppTest]) -> None:
    add_language(texts, "de", common='[language]\nname = "Deutsch"\n', tokens='title = "Zeichen"\n')
    app = open_app("tokens", checkpoint="tiny-translator")
    assert app.segmented_control(key="sidebar language").options == ["EN", "DE", "FR"]
    app.segmented_control(key="sidebar language").set_value("de").run()
    assert not app.exception and not app.error
    assert app.title[0].value == "Zeichen"
    assert any(ENGLISH["tokens"]["question"] in element.value for element in app.markdown)


def test_the_canvas_gets_its_words_in_french_and_none_in_english(in_language: Callable) -> None:
    from charts.canvas.figure import CanvasFigure
    from charts.toolkit.payload_bytes import unpack
    from ui.show.drawings import add_captions

    figure = CanvasFigure({"title": "t"}, {})
    assert add_captions(figure).packed() == figure.packed()
    in_language("fr")
    metadata, _ = unpack(add_captions(figure).packed())
    assert metadata["title"] == "t" and metadata["words"]["head {head}"] == "tête {head}"
