"""Any text in a box or an address gives a figure or a sentence, never an error, never markup.

Values of 100 kB and thousands of values: ``tests/golden/hostile.py``.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.golden.hostile import MARKUP
from tests.nights import TURN
from tests.pages.fuzzing import (
    PAGES,
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

# One example is enough to notice a mistake in every box and address; nightly, GLASSFORMER_FUZZ=60 searches for rare
# ones, for hours.
EXAMPLES = int(os.environ.get("GLASSFORMER_FUZZ") or 1)
FUZZ = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True)
def tiny(checkpoints_folder: Path) -> None:
    """Let the app find only the tiny checkpoints."""


def _type_into_one(box: Box) -> None:
    app = choose(open_page(box.page, "tiny-translator"), box.choices)

    @FUZZ
    @given(texts())
    @example(MARKUP)
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


# Boxes that a page must have, at once or behind a button.
OWN_BOXES = {
    "overview": {"share note"},
    "tokens": {"word", "character"},
    "embeddings": {"analogy a"},
    "surgery": {"patch sentence"},
    "compare": {"second"},
    "training": {"toy word"},
}


@pytest.mark.slow
@pytest.mark.sample
@pytest.mark.parametrize("page", PAGES)
def test_texts_in_the_boxes_of_a_page(page: str) -> None:
    """Type any texts into each box, one after the other.

    Boxes that are on every page are tested on the first.
    """
    boxes = walk(page, "tiny-translator").boxes
    needed = OWN_BOXES.get(page, set()) | ({"sentence"} if page not in NO_SENTENCE else set())
    assert needed <= {box.key for box in boxes}
    everywhere = {box.key for box in boxes_of(open_page(PAGES[0], "tiny-translator"))}
    for box in boxes:
        if page == PAGES[0] or box.key not in everywhere:
            _type_into_one(box)


ODD = ("9" * 5000, "x" * 100_000, "zero:encoder.0.self.1", "window 99999", "allow 0-0,99-99", f"patch:{'a ' * 50_000}")
VALUES = st.one_of(texts(), st.integers(-(10**30), 10**30).map(str), st.sampled_from(ODD))


@pytest.mark.slow
@pytest.mark.sample
@pytest.mark.parametrize("page", PAGES)
def test_any_address(page: str) -> None:
    names = parameters(page, "tiny-translator")

    @FUZZ
    @given(st.dictionaries(st.sampled_from(names), st.one_of(VALUES, st.lists(VALUES, max_size=3)), max_size=4))
    @example(dict.fromkeys(names, MARKUP))
    @example(dict.fromkeys(names, "9" * 5000))
    @example(dict.fromkeys(names, ["zero:encoder.0.self.1", "allow 0-0"] * 100))
    def run(address: dict) -> None:
        is_sound(open_page(page, "tiny-translator", **address))

    run()


@pytest.mark.slow
@pytest.mark.sample(of=2)
@pytest.mark.parametrize("page", PAGES)
def test_each_parameter_alone(page: str) -> None:
    """Only parameters of widgets, because among other invalid ones a value might never be read."""
    for number, name in enumerate(walk(page, "tiny-translator").bound):
        value = ("9" * 5000, MARKUP)[(number + TURN) % 2]
        is_sound(open_page(page, "tiny-translator", **{name: value}))
