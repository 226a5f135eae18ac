"""Page × kind of model × text: drawn, or refused in one sentence; a sample in every run, all of it in the night.

The pages' own tests of odd sentences stay until the whole of this has passed in a night.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import transformer
from tests.kinds_of_text import SENDABLE
from tests.pages.conftest import is_fine, said
from tests.pages.fuzzing import PAGES
from transformer.errors import InputError
from ui.words.texts import page_text

KINDS = ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment", "hf-gpt2")
TRANSLATOR = KINDS[:1]
FIRST = "The old man told us a story."
BY_DAY = 4  # texts that each view takes in every run
DAY = (*range(13), *range(15, 19))  # numbers of the views that every run tries; the others run in the night alone


@dataclass(frozen=True)
class View:
    """A view of a page: what the address adds, with which models it is tried, and what it still shows of any text.

    ``refuses``: how many sentences say that a text cannot be read; 0 for a page that reads none.
    """

    page: str
    address: Mapping[str, str | list[str]] = field(default_factory=dict)
    kinds: Sequence[str] = KINDS
    check: Callable[[AppTest, str], None] = lambda app, text: None
    refuses: int = 1

    @property
    def name(self) -> str:
        return " ".join([self.page, *(str(value) for value in self.address.values())])


def shows_the_sentence(app: AppTest, text: str) -> None:
    assert " ".join(text.split()).replace("\\", "") in said(app)


def has_metrics(app: AppTest, _: str) -> None:
    assert app.metric


def is_complete(app: AppTest, _: str) -> None:
    assert "**Completeness.**" in said(app)


def has_the_rows_of_a_head(app: AppTest, _: str) -> None:
    assert any(len(table.value) == 4 for table in app.dataframe)


def is_not_markup(app: AppTest, _: str) -> None:
    assert not any("<script>" in element.value.replace("\\<", "") for element in (*app.markdown, *app.caption))


CROSS = {"stack": "decoder", "kind": "cross"}
EDITS = {"edit": ["zero:decoder.0.cross.1", "edge:encoder.0.self.1=0-0"]}
VIEWS = (
    View("overview", kinds=TRANSLATOR, check=shows_the_sentence),
    View("overview"),
    View("tokens"),
    *(View("embeddings", {"embeddings section": name}) for name in ("lookup", "neighbours", "training")),
    *(View("positions", {"positions view": name}) for name in ("order", "heatmap", "distance")),
    *(View("positions", {"positions view": name}, KINDS[:2]) for name in ("waves", "similarity", "sum")),
    View("attention", check=has_metrics),
    View("attention", {"attention_section": page_text("attention")["section_trust"]}, KINDS[:4], is_complete),
    View("heads", check=has_the_rows_of_a_head),
    View("add_norm"),
    View("feed_forward"),
    View("decoding", check=is_not_markup),
    View("decoding", {"decoding_section": page_text("decoding")["section_tree"]}, KINDS[:2]),
    View("decoding", {"decoding_section": page_text("decoding")["section_alignment"]}, TRANSLATOR),
    View("masks", {}, KINDS),
    View("masks", {**CROSS, "mask": ["word 1"]}, TRANSLATOR),
    View("surgery"),
    View("surgery", EDITS, TRANSLATOR),
    View("lens"),
    View("lens", {"lens_view": page_text("lens")["view_author"]}),
    View("paths"),
    View("compare"),
    View("compare", {"compare_mode": "checkpoints"}),
    View("compare", {"compare_mode": "kinds"}),
    View("bugs"),
    View("training", {"training section": page_text("training")["section_step"]}),
    View("checkpoint", refuses=0),
    View("lessons", refuses=0),
)


def cases() -> list[object]:
    """Every view with every kind; by day a view once, the kinds in turn."""
    found = []
    for number, view in enumerate(VIEWS):
        for k, kind in enumerate(view.kinds):
            day = number in DAY and number % len(view.kinds) == k
            found.append(pytest.param(view, kind, id=f"{view.name}, {kind}", marks=() if day else pytest.mark.nightly))
    return found


@pytest.fixture
def folder(checkpoints_folder: Path, families_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", f"{checkpoints_folder}:{families_folder}")


def is_read(checkpoint: transformer.Checkpoint, text: str) -> bool:
    try:
        transformer.trace(checkpoint, text)
    except InputError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize(("view", "kind"), cases())
def test_any_text_is_drawn_or_refused_in_a_sentence(
    folder: None, open_app: Callable, tiny_checkpoint: Callable, family: Callable, request: pytest.FixtureRequest,
    view: View, kind: str,
) -> None:  # fmt: skip
    """One text after the other on one page, as a reader types them: what one leaves behind must not hurt the next."""
    checkpoint = (family if kind.startswith("hf-") else tiny_checkpoint)(kind)
    app = open_app(view.page, checkpoint=kind, sentence=FIRST, **view.address)
    is_fine(app)
    nightly = "nightly" in (request.config.getoption("-m") or "")
    wrong = []
    for name in SENDABLE if nightly else in_turn(VIEWS.index(view)):
        text = SENDABLE[name]
        app.text_area(key="sidebar sentence").set_value(text).run()
        try:
            assert not app.exception and not app.error, [error.value for error in app.error]
            if is_read(checkpoint, text):
                is_fine(app)
                view.check(app, text)
            else:
                assert len(app.warning) + len(app.info) >= view.refuses
                assert app.text_area(key="sidebar sentence").value == text
        except AssertionError as error:
            wrong.append(f"{name}: {error}")
    assert not wrong, "\n".join(wrong)


def in_turn(number: int) -> list[str]:
    names = list(SENDABLE)
    return [names[(number * BY_DAY + place) % len(names)] for place in range(BY_DAY)]


def test_every_page_is_tried() -> None:
    assert {view.page for view in VIEWS} == set(PAGES)
