"""Views of all pages, on which every kind of text and every family of models is tested."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from streamlit.testing.v1 import AppTest

from tests.pages.conftest import drawn, said
from ui.words.texts import page_text

KINDS = ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment", "hf-gpt2")
TRANSLATOR, WRITERS = KINDS[:1], KINDS[:2]
SIDEBAR = "sentence"


@dataclass(frozen=True)
class View:
    """A view of a page.

    Attributes:
        refuses: Whether the page explains why a text cannot be read; false if it reads none.
        box: The box in which the text is typed.
        nothing: The page's message if nothing was typed.
    """

    page: str
    address: Mapping[str, str | list[str]] = field(default_factory=dict)
    kinds: Sequence[str] = KINDS
    check: Callable[[AppTest, str], None] = lambda app, text: None
    refuses: bool = True
    box: str = SIDEBAR
    nothing: str = ""

    @property
    def name(self) -> str:
        box = () if self.box == SIDEBAR else (self.box,)
        return " ".join([self.page, *map(str, self.address.values()), *box])


def shows_the_sentence(app: AppTest, text: str) -> None:
    picture, _ = drawn(app, "living picture")
    read = "".join(token["text"] for token in picture["stacks"][0]["tokens"] if not token["special"])
    assert read
    if text.isascii():  # other characters may be read as bytes
        assert "".join(read.replace("·", " ").split()) == "".join(text.split())


def has_metrics(app: AppTest, _: str) -> None:
    assert app.metric


def is_complete(app: AppTest, _: str) -> None:
    assert "**Completeness.**" in said(app)


def has_a_row_for_each_head(app: AppTest, _: str) -> None:
    tables = [table.value for table in app.dataframe if page_text("heads")["column"]["layer"] in table.value.columns]
    layers, heads = (int(tables[0][page_text("heads")["column"][name]].max()) + 1 for name in ("layer", "head"))
    assert len(tables) == 1 and len(tables[0]) == layers * heads >= 4


def is_not_markup(app: AppTest, _: str) -> None:
    assert not any("<script>" in element.value.replace("\\<", "") for element in (*app.markdown, *app.caption))


CROSS = {"stack": "decoder", "kind": "cross"}
EDITS = {"edit": ["zero:decoder.0.cross.1", "edge:encoder.0.self.1=0-0"]}
VIEWS = (
    View("overview", kinds=TRANSLATOR, check=shows_the_sentence),
    View("overview"),
    View("tokens"),
    *(View("embeddings", {"embeddings section": name}) for name in ("lookup", "map", "analogies", "training")),
    *(View("positions", {"positions view": name}) for name in ("order", "heatmap", "distance")),
    *(View("positions", {"positions view": name}, WRITERS) for name in ("waves", "similarity", "sum")),
    View("attention", check=has_metrics),
    View("attention", {"attention_section": "trust"}, KINDS[:4], is_complete),
    View("attention", {"attention_section": "general"}),
    View("heads", check=has_a_row_for_each_head),
    View("add_norm"),
    *(View("add_norm", {"add norm view": name}) for name in ("statistics", "arithmetic", "parameters", "stream")),
    View("feed_forward"),
    View("decoding", check=is_not_markup),
    View("decoding", {"decoding_section": "tree"}, WRITERS),
    View("decoding", {"decoding_section": "alignment"}, TRANSLATOR),
    View("masks"),
    View("masks", {**CROSS, "mask": ["word 1"]}, TRANSLATOR),
    View("surgery"),
    View("surgery", EDITS, TRANSLATOR),
    View("lens"),
    View("lens", {"lens_view": "author"}),
    View("compare"),
    View("compare", box="second", nothing=page_text("compare")["second_empty"]),
    View("compare", {"compare_mode": "checkpoints"}),
    View("compare", {"compare_mode": "kinds"}),
    View("training", {"training section": "step"}),
    View("checkpoint", refuses=False),
    View("lessons", refuses=False),
    View("lessons", {"exercise": "bugs"}, KINDS[:4]),
    View("by_hand", refuses=False),
)
