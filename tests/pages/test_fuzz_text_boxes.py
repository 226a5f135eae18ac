"""Any text in a box or an address gives a figure or a sentence, never an error, never markup."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.nights import by_day
from tests.pages.fuzzing import (
    PAGES,
    PIECES,
    SENTENCE,
    Box,
    boxes_of,
    choose,
    is_sound,
    open_page,
    parameters,
    texts,
    type_into,
    walk,
)
from ui.shell.navigation import NO_SENTENCE

KINDS = ("tiny-gpt", "tiny-bert", "tiny-sentiment")  # beside the translator, which is always tested
ALL_MARKUP = "<b>zq</b> **zq, zq** :red[zq] :material/zq: [zq](http://zq) $zq$ `zq` ~~zq~~ </s> \x00 \u202e"
# One example is enough to notice a mistake in every box and address; nightly, GLASSFORMER_FUZZ=60 searches for rare
# ones, for hours.
EXAMPLES = int(os.environ.get("GLASSFORMER_FUZZ") or 1)
OWN_BOXES = ("overview", "tokens", "embeddings", "surgery", "compare", "training", "lessons")
FUZZ = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True)
def tiny(checkpoints_folder: Path) -> None:
    """Let the app find only the tiny checkpoints."""


def _type_into_one(box: Box, checkpoint: str) -> None:
    app = choose(open_page(box.page, checkpoint), box.choices)

    @FUZZ
    @given(texts())
    @example(ALL_MARKUP)
    @example("")
    def type_it(text: str) -> None:
        type_into(app, box.key, text)
        is_sound(app)
        for found in boxes_of(app):
            if found.key == box.key and found.type != "selectbox":
                most = found.proto.max_chars or len(text)  # the boxes accept no more
                assert found.value == text[:most], f"{box} holds {found.value!r} now"

    type_it()
    # The page still works for the next sentence.
    is_sound(type_into(app, "sentence", SENTENCE))


@pytest.mark.slow
@pytest.mark.parametrize("page", by_day(PAGES, OWN_BOXES))
def test_texts_in_the_boxes_of_a_page(page: str) -> None:
    """Type any texts into each box, one after the other.

    Boxes that are on every page are tested on the first.
    """
    everywhere = {box.key for box in walk(PAGES[0], "tiny-translator").boxes}
    for box in walk(page, "tiny-translator").boxes:
        if page == PAGES[0] or box.key not in everywhere:
            _type_into_one(box, "tiny-translator")


@pytest.mark.nightly
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("checkpoint", ("tiny-translator", *KINDS))
def test_texts_in_all_boxes(page: str, checkpoint: str) -> None:
    for box in walk(page, checkpoint).boxes:
        if box.key != "share note" or page == PAGES[0]:  # the sidebar, which is the same everywhere
            _type_into_one(box, checkpoint)


@pytest.mark.slow
@pytest.mark.parametrize("pages", [OWN_BOXES, pytest.param(PAGES, marks=pytest.mark.nightly)])
def test_the_walk_finds_the_boxes(pages: tuple[str, ...]) -> None:
    """Each page that reads a sentence has its box; the others are found behind the buttons that show them."""
    found = {(page, box.key) for page in pages for box in walk(page, "tiny-translator").boxes}
    assert {(page, "sentence") for page in pages if page not in NO_SENTENCE} <= found
    for box in [("tokens", "word"), ("tokens", "character"), ("surgery", "patch sentence"),
                ("compare", "second"), ("training", "toy word"),
                ("embeddings", "analogy a"), ("overview", "share note")]:  # fmt: skip
        assert box in found


OF_ALL = ("sentence", "target", "checkpoint", "layer", "stack", "lesson", "note", "language")
HUGE = [
    *(("attention", name) for name in OF_ALL),
    *(("surgery", "edit"), ("masks", "mask"), ("compare", "second"), ("compare", "other"), ("compare", "picked")),
    *(("decoding", "branches"), ("decoding", "step"), ("lessons", "patient"), ("positions", "shuffles")),
    ("tokens", "word"),
]
ODD = ("9" * 5000, "x" * 100_000, "zero:encoder.0.self.1", "window 99999", "allow 0-0,99-99", f"patch:{'a ' * 50_000}")
VALUES = st.one_of(texts(), st.integers(-(10**30), 10**30).map(str), st.sampled_from(ODD))


@pytest.mark.slow
@pytest.mark.parametrize("page", by_day(PAGES, OWN_BOXES))
def test_any_address(page: str) -> None:
    names = parameters(page, "tiny-translator")

    @FUZZ
    @given(st.dictionaries(st.sampled_from(names), st.one_of(VALUES, st.lists(VALUES, max_size=3)), max_size=4))
    @example(dict.fromkeys(names, ALL_MARKUP))
    @example(dict.fromkeys(names, "9" * 5000))
    @example(dict.fromkeys(names, ["zero:encoder.0.self.1", "allow 0-0"] * 100))
    def run(address: dict) -> None:
        is_sound(open_page(page, "tiny-translator", **address))

    run()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "both"),
    [
        *(pytest.param(page, False, id=page) for page in PAGES[::8]),
        *(pytest.param(page, True, id=f"{page}, both", marks=pytest.mark.nightly) for page in PAGES),
    ],
)
def test_each_parameter_alone(page: str, both: bool) -> None:
    """Only parameters of widgets, because among other invalid ones a value might never be read.

    Each gets one of the two values in every run, on every eighth page; both on all pages at night.
    """
    for number, name in enumerate(walk(page, "tiny-translator").bound):
        for place, value in enumerate(("9" * 5000, ALL_MARKUP)):
            if both or (number + place) % 2 == 0:
                is_sound(open_page(page, "tiny-translator", **{name: value}))


MANY = [f"zero:encoder.{n % 2}.self.{n % 2}" for n in range(10_000)]  # Streamlit accepts at most 1,000
SIZES = ("x" * 100_000, MANY, "a " * 50_000, MANY[:900])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "parameter", "sizes"),
    [
        *(pytest.param(*one, SIZES[number % 2 :: 2], id=" ".join(one)) for number, one in enumerate(HUGE)),
        *(pytest.param(*one, SIZES, id=f"{' '.join(one)}, all", marks=pytest.mark.nightly) for one in HUGE),
    ],
)
def test_a_huge_address_is_answered_at_once(page: str, parameter: str, sizes: tuple) -> None:
    """100 kB in one value, and ten thousand values: a sentence, without long computation.

    Every run tries two of the four sizes with each parameter, in turn.
    """
    open_page(page, "tiny-translator")  # one-time loading is not measured
    for values in sizes:
        begun = time.process_time()
        app = open_page(page, "tiny-translator", **{parameter: values})
        is_sound(app)
        assert time.process_time() - begun < 10


@pytest.mark.nightly
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("checkpoint", KINDS)
def test_any_address_of_the_other_kinds(page: str, checkpoint: str) -> None:
    names = parameters(page, checkpoint)

    @FUZZ
    @given(st.dictionaries(st.sampled_from(names), st.one_of(VALUES, st.lists(VALUES, max_size=3)), max_size=4))
    def run(address: dict) -> None:
        is_sound(open_page(page, checkpoint, **address))

    run()


# Every run types four pieces at a time, so that a mistake in one still shows. Each alone: at night, and many of them in
# tests/kinds_of_text.py.
FOURS = tuple(" ".join(PIECES[first : first + 4]) for first in range(0, len(PIECES), 4))


@pytest.mark.parametrize("pieces", [FOURS, pytest.param(PIECES, marks=pytest.mark.nightly)], ids=["fours", "each"])
def test_every_nasty_piece_as_the_sentence(pieces: tuple[str, ...]) -> None:
    """Texts are typed one after the other on one page, so that leftovers of one would show in the next."""
    app, wrong = open_page("attention", "tiny-bert"), []
    for piece in pieces:
        type_into(app, "sentence", piece)
        try:
            is_sound(app)
        except AssertionError as error:
            wrong.append(f"{piece!a}: {error}")
    assert not wrong, "\n".join(wrong)
