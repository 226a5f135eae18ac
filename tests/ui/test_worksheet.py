"""Worksheets: the printed text, what only the key contains, and that typed text never becomes markup."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urlsplit

import pytest

import transformer
from tests.kinds_of_text import SENDABLE
from tests.nights import by_day
from ui.classroom.class_address import network_address
from ui.page.page import Page
from ui.shell.focus import Focus
from ui.shell.guidance.lessons import PLACE, Lesson, Step, lessons
from ui.words.texts import as_plain, page_text, use_language
from views.lessons.lessons_sections import step_link
from views.lessons.worksheet import worksheet
from views.lessons.worksheet_drawings import PARTS, figure_of, framed_figure, step_figures

PAGE = Page("lessons", Focus())
QUIZ = Step("tokens", "One", "Do `it`.", "See **this**.", "Which?", "yes", "Because *so*.", "", (("no way", "As if."),))
LESSON = Lesson("01-mine", "Mine", "To see.", 10, (QUIZ, Step("attention", "Two", "Go.", "Look.")))
SENTENCE = "The dog sleeps under the table."


class Outline(HTMLParser):
    """Return tags, words and links of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words: list[str] = []
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("href", "src")]

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.words.append(data.strip())


def paper(lesson: Lesson = LESSON, *, key: bool = False) -> str:
    return worksheet(PAGE, lesson, key=key, link="http://here/tokens?step={}".format)


def test_a_worksheet_asks_and_the_key_answers() -> None:
    sheet, key = paper(), paper(key=True)
    for text in ("Mine", "Which?", "no way", "<code>it</code>", "<b>this</b>", "☐ yes"):
        assert text in sheet
    assert "Because" not in sheet and "☒" not in sheet
    assert "☒ <b>yes</b>" in key and "Because <i>so</i>." in key and "☐ no way <i>– As if.</i>" in key
    assert "As if" not in sheet
    assert sheet.count('class="line"') == 1 and 'class="line"' not in key
    assert Outline(sheet).links == ["http://here/tokens?step=1", "http://here/tokens?step=2"]


def test_a_file_needs_nothing_else() -> None:
    for html in (paper(), paper(key=True)):
        outline = Outline(html)
        assert outline.tags[0] == "html" and not {"script", "link", "img", "iframe"} & set(outline.tags)
        assert "url(" not in html and "@import" not in html and "@media print" in html
        assert '<meta charset="utf-8">' in html and "default-src 'none'" in html


@pytest.mark.parametrize("nasty", (*filter(str.strip, SENDABLE.values()), '"><img src=x onerror=alert(1)>', "a\\*b"))
def test_typed_text_stays_text(nasty: str) -> None:
    def lesson(text: str) -> Lesson:
        return replace(LESSON, steps=(replace(QUIZ, question=as_plain(text), explanation=as_plain(text)),))

    for key in (False, True):
        outline, plain = (
            Outline(worksheet(PAGE, lesson(text), key=key, link=lambda number: "javascript:alert(1)"))
            for text in (nasty, "-")
        )
        assert outline.tags == plain.tags and not outline.links
        said, besides = ("".join("".join(each.words).split()) for each in (outline, plain))
        typed = "".join(nasty.split())
        assert said.count(typed) - besides.count(typed) == (2 if key else 1)


def test_a_link_says_the_whole_place() -> None:
    focus = Focus(checkpoint="mine", sentence="a & b=c?", layer=2, head=1)
    steps = (replace(QUIZ, page="attention", focus={name: getattr(focus, name) for name in PLACE}),)
    lesson = replace(LESSON, steps=steps)
    link = step_link(lesson, 1, focus=Focus(checkpoint="mine"), base="http://here:8501/app/")
    assert link.startswith("http://here:8501/app/attention?checkpoint=mine&")
    address = dict(parse_qsl(urlsplit(link).query))
    found, notes = Focus.from_address(address, default=Focus())
    assert replace(found, lesson="") == focus and found.lesson == LESSON.name and not notes
    assert step_link(lesson, 1, focus=focus, base="") == ""
    assert address["sentence"] == "a & b=c?"


@pytest.mark.parametrize(
    ("url", "listens_on", "expected"),
    [
        ("http://127.0.0.1:8501/app", "0.0.0.0", "http://198.51.100.4:8501/app"),
        ("http://localhost", None, "http://198.51.100.4"),
        ("http://localhost:8501", "127.0.0.1", "http://localhost:8501"),  # only this machine reaches it
        ("https://school.example/app", "0.0.0.0", "https://school.example/app"),
        ("", "0.0.0.0", ""),
    ],
)
def test_the_network_reaches_an_app_by_another_address(
    url: str, listens_on: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ui.classroom.class_address._own_host", lambda: "198.51.100.4")
    assert network_address(url, listens_on=listens_on) == expected
    monkeypatch.setattr("ui.classroom.class_address._own_host", lambda: "")
    assert network_address(url, listens_on=listens_on) == url


@pytest.mark.parametrize(("host", "codes"), [("127.0.0.1:8501", 0), ("localhost", 0), ("school.example", 2)])
def test_a_link_that_only_this_machine_opens_has_no_code(host: str, codes: int) -> None:
    for key, expected in ((False, codes), (True, 0)):
        html = worksheet(PAGE, LESSON, key=key, link=lambda number: f"http://{host}/tokens?step={number}")
        assert html.count('class="qr"') == expected


@pytest.mark.parametrize("page", ["attention", "heads", "positions", "add_norm"])
def test_a_figure_of_the_canvas_stands_on_worksheet_and_key(tiny_checkpoint, page: str) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    figure = figure_of(PAGE, page, Focus(layer=1, head=1, token=2), trace)
    for key in (False, True):
        html = worksheet(PAGE, LESSON, key=key, link=str, figures=([figure], []))
        outline = Outline(html)
        assert outline.tags.count("figure") == html.count("<figure class=") == 1 and "iframe" not in outline.tags
        scripts = 1 + 2 + 1  # the figure's numbers, the shared part, and the script that draws
        assert outline.tags.count("script") == scripts
        both = worksheet(PAGE, LESSON, key=key, link=str, figures=([figure], [figure]))
        assert Outline(both).tags.count("script") == scripts, "the second step asks nothing"
        assert len(both) < 1.1 * len(html)


@pytest.mark.parametrize("page", ["tokens", "decoding", "lens"])
@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
def test_words_on_paper_are_words(tiny_checkpoint, page: str, kind: str) -> None:
    trace = transformer.trace(tiny_checkpoint(kind), "The <b>dog</b> sleeps.")
    html = figure_of(PAGE, page, Focus(stack=trace.stacks[0]), trace).html()
    outline = Outline(html)
    assert {"b", "iframe", "script"}.isdisjoint(outline.tags) and "figcaption" in outline.tags
    if page == "tokens":
        assert all(
            f"<bdi>{escape(token.display)}</bdi><small>{token.id}<" in html
            for token in trace.tokens(trace.stacks[0]).tokens[:40]
        )


@pytest.mark.slow
@pytest.mark.parametrize("language", by_day(["en", "fr"], ["en"]))  # a French figure: below
def test_every_question_of_every_lesson_has_its_figure_and_its_key(language: str, shipped_folder, caplog) -> None:
    found = lessons(language)[0]
    assert set(PARTS) <= {step.figure for lesson in found for step in lesson.steps}
    drawn = {}
    with use_language(language):
        p = Page("lessons", Focus())
        for lesson in found:
            figures = step_figures(p, lesson, Focus(checkpoint="en-fr"))
            assert all(figures), lesson.name
            drawn[lesson.name] = [part.html() for (part,) in figures]
            paper, key = (
                Outline(worksheet(p, lesson, key=solved, link=lambda number: "", figures=figures))
                for solved in (False, True)
            )
            count = len(lesson.steps)
            assert (" ".join(paper.words).count("☒"), " ".join(key.words).count("☒")) == (0, count), lesson.name
            assert " ".join(key.words).count("– ") >= sum(len(step.wrong) for step in lesson.steps)
    assert not caplog.records
    cards = drawn["01-tokens-and-vectors"][1]
    assert cards.count("<li") == 8 and "1476" in cards
    decoding = drawn["07-decoding"]
    assert "·vous" in decoding[1] and decoding[5].count("oublié") >= 5, "where it hesitates, and where it gets lost"
    assert drawn["08-break-and-mend"][5].count("<figure") == 2


def test_a_figure_is_drawn_outside_of_a_run_and_in_the_language_of_the_paper(checkpoints_folder, monkeypatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(checkpoints_folder))
    focus = Focus(checkpoint="tiny-translator", sentence=SENTENCE, layer=1, head=1)
    with use_language("fr"):
        (drawing,) = framed_figure(Page("lessons", Focus()), "attention", focus)
    title = drawing.figure.metadata["title"]
    assert "couche 1" in title and "tête 1" in title and page_text("lessons").language == "en"
    assert framed_figure(PAGE, "attention", Focus(checkpoint="gone", sentence=SENTENCE)) == []
