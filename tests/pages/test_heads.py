"""The Heads page in AppTest: every kind of checkpoint, every order, and a table of the measurements."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

import transformer
from tests.pages.conftest import codes, is_fine, said
from transformer.heads.head_roles import HeadRole, head_roles
from ui.page.kit import Kit
from ui.words.texts import page_text, page_texts
from views.heads import heads_sections as sections

TEXT = page_text("heads")
PLACES = [
    ("tiny-translator", "encoder", "self"),
    ("tiny-translator", "decoder", "self"),
    ("tiny-translator", "decoder", "cross"),
    ("tiny-gpt", "decoder", "self"),
    ("tiny-bert", "encoder", "self"),
    ("tiny-sentiment", "encoder", "self"),
]
SENTENCE = "The old man told us a story, and the sea was cold."


@pytest.fixture
def open_page(open_app: Callable[..., AppTest]) -> Callable[..., AppTest]:
    def run(**address: str) -> AppTest:
        app = open_app("heads", **{"sentence": SENTENCE, **address})
        is_fine(app)
        return app

    return run


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    """Return the metadata of all drawings."""
    found: list[dict] = []
    monkeypatch.setattr("views.heads.heads_sections.show_grid", lambda figure, **_: found.append(figure.metadata))
    return found


def numbers(app: AppTest) -> pd.DataFrame:
    """Return the table of all heads."""
    return next(table.value for table in app.dataframe if TEXT["column"]["layer"] in table.value.columns)


@pytest.mark.parametrize(("checkpoint", "stack", "kind"), PLACES)
def test_every_head_of_every_kind_of_attention_is_in_the_table(
    open_page: Callable, tiny_checkpoint: Callable, checkpoint: str, stack: str, kind: str
) -> None:
    place = {"stack": stack, "kind": kind, "layer": "1", "head": "1"}
    app = open_page(checkpoint=checkpoint, heads_from="3", heads_to="1", **place)
    trace = transformer.trace(tiny_checkpoint(checkpoint), SENTENCE)
    table, views = numbers(app), [trace.attention(stack, layer, kind) for layer in (0, 1)]
    places = table[[TEXT["column"]["layer"], TEXT["column"]["head"]]].to_numpy().tolist()
    assert places == [[0, 0], [0, 1], [1, 0], [1, 1]]
    skipped = 1 if (stack, kind) == ("decoder", "self") else 0  # the first row of a decoder has no choice
    expected = [view.entropy[head, skipped:].mean() for view in views for head in (0, 1)]
    np.testing.assert_allclose(table[TEXT["measure"]["entropy"]], expected, rtol=1e-5)
    (pair,) = (column for column in table.columns if " → " in column)
    np.testing.assert_array_equal(table[pair], [view.weights[head, 3, 1] for view in views for head in (0, 1)])
    assert "**Layer 1, head 1**" in said(app)


def test_a_measure_that_does_not_exist_is_no_column(open_page: Callable) -> None:
    columns = numbers(open_page(checkpoint="tiny-gpt")).columns
    assert not {TEXT["role"][name]["name"] for name in ("next", "monotone")} & set(columns)


def test_every_order_is_drawn(open_page: Callable, drawn: list[dict]) -> None:
    app = open_page()
    for order in ("sinks", "entropy", "role", "layer"):
        app.selectbox(key="heads_order").set_value(order).run()
        is_fine(app)
        assert len(drawn[-1]["tiles"]) == 4


def test_the_button_leads_to_the_attention_page_with_the_same_head(open_page: Callable) -> None:
    app = open_page(stack="decoder", kind="cross", layer="1", head="1")
    next(button for button in app.button if button.label == TEXT["open"]).click().run()
    assert app.title[0].value == "Attention"
    assert (app.query_params["layer"], app.query_params["head"], app.query_params["kind"]) == ("1", "1", "cross")


def test_the_snippet_prints_the_role_of_the_head(open_page: Callable, run_snippet: Callable) -> None:
    app = open_page(stack="decoder", kind="cross", layer="1", head="1")
    printed = run_snippet(next(code for code in codes(app) if "import transformer" in code))
    assert TEXT["role"][printed.split()[0]]["name"] == numbers(app).iloc[3][TEXT["column"]["role"]]


def head(layer: int, index: int, role: str, **scores: float) -> HeadRole:
    return HeadRole("encoder", "self", layer, index, role, {"broad": 0.5, "sinks": 0.0, **scores})


ROLES = [
    head(0, 0, "none", broad=0.9, sinks=0.2),
    head(0, 1, "previous", previous=0.6, broad=0.4, sinks=0.1),
    head(1, 0, "sink", sink=0.8, broad=0.3, sinks=0.8),
    head(1, 1, "previous", previous=0.9, broad=0.1, sinks=0.3),
]


def page_of(text: object = TEXT) -> Kit:
    """Return a page that has nothing but its texts."""
    p = Kit()
    p.name, p.text = "heads", text
    return p


def first_sentence(roles: list[HeadRole], monkeypatch: pytest.MonkeyPatch, text: object = TEXT) -> str:
    written: list[str] = []
    said = SimpleNamespace(markdown=lambda words, **_: written.append(words))
    monkeypatch.setattr("views.heads.heads_sections.st", said)
    monkeypatch.setattr("ui.page.kit.st", said)
    sections.claim(page_of(text), roles, many=False)
    return written[0]


def test_the_page_opens_with_how_many_heads_match_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    assert first_sentence(ROLES, monkeypatch) == "**3 of these 4 heads match a named pattern in this sentence.**"
    assert first_sentence(ROLES[1:], monkeypatch).startswith("**All 3 heads match")
    idle = [head(0, 0, "none", broad=0.8), head(1, 0, "none", broad=0.4)]
    assert first_sentence(idle, monkeypatch).startswith("**None of these 2 heads matches")
    assert first_sentence([*idle, ROLES[1]], monkeypatch).startswith("**One of these 3 heads matches")
    short = [head(0, index, "none", broad=float("nan"), sinks=float("nan")) for index in range(3)]
    assert first_sentence(short, monkeypatch) == TEXT["claim_too_short"]


@pytest.mark.parametrize("language", ["en", "fr"])
def test_of_a_picture_the_page_speaks_of_the_picture(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = next(text for text in page_texts("heads") if text.language == language)
    text, idle = plain.instead("of_pictures"), [head(0, 0, "none", broad=0.8)]
    assert text["claim_here"] in (claimed := first_sentence(idle, monkeypatch, text))
    assert plain["claim_here"] not in claimed and text["claim_too_short"] != plain["claim_too_short"]


def test_words_of_a_head() -> None:
    shorts = [sections.short_of(page_of(), role) for role in ROLES[1:]]
    assert shorts == ["previous 0.60", "sink 0.80", "previous 0.90"]
    words, cell = sections.words_of(page_of(), None, ROLES[2])
    assert words[1:] == ("Mostly on special tokens", "80% of its attention goes to special tokens.") and cell is None
    near = head(0, 0, "none", previous=0.4, next=0.2, sink=float("nan"))
    assert sections.short_of(page_of(), near) == "previous 0.40" and sections.role_of(near) == "none"


@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize(("checkpoint", "stack", "kind"), PLACES)
def test_colours_are_in_the_legend_and_every_map_has_words(
    open_page: Callable,
    tiny_checkpoint: Callable,
    drawn: list[dict],
    checkpoint: str,
    stack: str,
    kind: str,
    language: str,
) -> None:
    open_page(checkpoint=checkpoint, stack=stack, kind=kind, language=language)
    trace = transformer.trace(tiny_checkpoint(checkpoint), SENTENCE)
    views = [trace.attention(stack, layer, kind) for layer in range(trace.n_layers(stack))]
    roles = {(role.layer, role.head): role.role for view in views for role in head_roles(view)}
    metadata = drawn[-1]
    assert metadata["kind"] == "heads" and len(metadata["tiles"]) == len(roles)
    named = [tuple(place) for place in metadata["named"]]
    assert named[0] == (0, 0), "the selected head"
    patterns = [roles[place] for place in named]
    assert len(set(patterns)) == len(patterns) and "none" not in patterns[1:]
    for tile in metadata["tiles"]:
        role = roles[tile["layer"], tile["head"]]
        assert bool(tile.get("clear")) == bool(tile["caption"]) == ("colour" in tile)
        assert "colour" in tile or role == "none"
        assert tile["title"] and tile["sentence"]
        assert language != "en" or tile["title"] == TEXT["role"][role]["title"]
    in_legend = {colour for _, colour in metadata.get("groups", [])}
    assert in_legend == {tile["colour"] for tile in metadata["tiles"] if "colour" in tile}
    assert metadata["rows"] == list((trace.prediction if kind == "cross" else trace.tokens(stack)).labels)


def test_heads_that_share_their_keys_are_drawn_and_told(
    family: Callable, open_app: Callable, monkeypatch: pytest.MonkeyPatch, drawn: list[dict]
) -> None:
    monkeypatch.setattr("ui.compute.loading._typed", {})
    checkpoint = family("hf-llama")
    attention = checkpoint.model.decoder.layers[0].self_attention
    size = attention.n_heads // attention.n_key_heads
    assert size > 1
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(checkpoint.path.parent))
    app = open_app("heads", checkpoint="hf-llama", sentence="The cat sat.", layer="0", head="1")
    is_fine(app)
    assert drawn[-1]["heads_a_key"] == size
    assert f"Heads 0 to {size - 1} of this layer share" in said(app)


def test_every_measure_has_a_name_and_the_definitions_have_their_thresholds(
    open_page: Callable, tiny_checkpoint: Callable
) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    for stack, kind in trace.attention_kinds():
        for role in head_roles(trace.attention(stack, 0, kind)):
            assert set(role.scores) <= {*TEXT["role"], *TEXT["measure"]}
    written = said(open_page())
    for sentence in (
        "at least 0.5",
        "at least 1.5 times",
        "needs 0.7.",
        "needs 0.85 ",
        "(n from 8 to 24, or less if the model reads fewer tokens; seed 0)",
        "in at least 0.5",
    ):
        assert sentence in written
    assert not re.search(r"(?<![_^])\{[a-z_]+\}", re.sub(r"\$[^$]*\$", "", written)), "a number is missing"
