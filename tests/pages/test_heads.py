"""The Heads page in AppTest: every kind of checkpoint, every order, and a table of the measurements."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

import transformer
from tests.pages.conftest import codes
from transformer.heads.head_roles import HeadRole, head_roles
from ui.words.texts import page_text, page_texts
from views.heads.heads_view_model import ORDERS, RankedHeads, place_of
from views.heads.role_words import captions, claim, definitions, head_words, role_counts
from views.heads.sections import measures, role_table

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
        assert not app.exception
        assert not app.error, [error.value for error in app.error]
        return app

    return run


def numbers(app: AppTest) -> pd.DataFrame:
    """Return the table of all heads."""
    return next(table.value for table in app.dataframe if TEXT["column_layer"] in table.value.columns)


@pytest.mark.parametrize(("checkpoint", "stack", "kind"), PLACES)
def test_every_head_of_every_kind_of_attention_is_in_the_table(
    open_page: Callable, tiny_checkpoint: Callable, checkpoint: str, stack: str, kind: str
) -> None:
    app = open_page(checkpoint=checkpoint, stack=stack, kind=kind, layer="1", head="1")
    trace = transformer.trace(tiny_checkpoint(checkpoint), SENTENCE)
    table = numbers(app)
    assert table[[TEXT["column_layer"], TEXT["column_head"]]].to_numpy().tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    entropy = [trace.attention(stack, layer, kind).entropy for layer in (0, 1)]
    skipped = 1 if (stack, kind) == ("decoder", "self") else 0  # the first row of a decoder has no choice
    expected = [rows[head, skipped:].mean() for rows in entropy for head in (0, 1)]
    np.testing.assert_allclose(table[TEXT["measure_name"]["entropy"]], expected, rtol=1e-5)
    assert "**Layer 1, head 1**" in "\n".join(element.value for element in app.markdown)


def test_every_order_is_drawn(open_page: Callable) -> None:
    app = open_page()
    for order in reversed(ORDERS):
        app.selectbox(key="heads_order").set_value(order).run()
        assert not app.exception and not app.error


def test_the_button_leads_to_the_attention_page_with_the_same_head(open_page: Callable) -> None:
    app = open_page(stack="decoder", kind="cross", layer="1", head="1")
    next(button for button in app.button if button.label == TEXT["open"]).click().run()
    assert app.title[0].value == "Attention"
    assert (app.query_params["layer"], app.query_params["head"], app.query_params["kind"]) == ("1", "1", "cross")


def test_the_snippet_prints_the_role_of_the_head(
    open_page: Callable, checkpoints_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_page(stack="decoder", kind="cross", layer="1", head="1")
    snippet = next(code for code in codes(app) if "import transformer" in code)
    (tmp_path / "checkpoints").symlink_to(checkpoints_folder)
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(snippet, "snippet", "exec"), {})  # the code that the page shows
    shown = numbers(app).iloc[3]
    role = next(name for name, called in TEXT["role"].items() if called == shown[TEXT["column_role"]])
    assert printed.getvalue().split()[0] == role


def head(layer: int, index: int, role: str, **scores: float) -> HeadRole:
    return HeadRole("encoder", "self", layer, index, role, {"broad": 0.5, "sinks": 0.0, **scores})


def ranked(roles: list[HeadRole]) -> RankedHeads:
    return RankedHeads(tuple(roles))


ROLES = [
    head(0, 0, "none", broad=0.9, sinks=0.2),
    head(0, 1, "previous", previous=0.6, broad=0.4, sinks=0.1),
    head(1, 0, "sink", sink=0.8, broad=0.3, sinks=0.8),
    head(1, 1, "previous", previous=0.9, broad=0.1, sinks=0.3),
]


def test_the_page_opens_with_how_many_heads_match_a_pattern() -> None:
    assert claim(ranked(ROLES), TEXT).startswith("**3 of these 4 heads match a named pattern in this sentence.**")
    assert claim(ranked(ROLES[1:]), TEXT) == TEXT["claim_all"].format(heads=3, where=TEXT["claim_here"])
    idle = [head(0, 0, "none", broad=0.8), head(1, 0, "none", broad=0.4)]
    assert claim(ranked(idle), TEXT) == TEXT["claim_none"].format(heads=2, where=TEXT["claim_here"])
    assert claim(ranked([*idle, ROLES[1]]), TEXT).startswith("**One of these 3 heads matches")
    words = head_words(ranked(ROLES), TEXT)
    assert words[0, 0].title == TEXT["no_role"] == "Matches no named pattern"
    assert words[1, 0][1:] == ("Mostly on special tokens", "80% of its attention goes to special tokens.")
    nan = float("nan")
    short = [head(0, index, "none", broad=nan, sinks=nan) for index in range(3)]
    assert claim(ranked(short), TEXT) == TEXT["claim_too_short"]
    assert head_words(ranked(short), TEXT)[0, 0].title == TEXT["no_role"]


@pytest.mark.parametrize("language", ["en", "fr"])
def test_of_a_picture_the_page_speaks_of_the_picture(language: str) -> None:
    plain = next(text for text in page_texts("heads") if text.language == language)
    text, idle = plain.instead("of_pictures"), [head(0, 0, "none", broad=0.8)]
    assert text["claim_here"] in claim(ranked(idle), text) and plain["claim_here"] not in claim(ranked(idle), text)
    assert text["claim_too_short"] != plain["claim_too_short"]


@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize(("checkpoint", "stack", "kind"), PLACES)
def test_the_selected_map_is_large_beside_other_patterns_and_colours_are_in_the_legend(
    open_page: Callable,
    tiny_checkpoint: Callable,
    monkeypatch: pytest.MonkeyPatch,
    checkpoint: str,
    stack: str,
    kind: str,
    language: str,
) -> None:
    drawn = []
    monkeypatch.setattr("views.heads.maps.show_grid", lambda figure, **_: drawn.append(figure.metadata))
    open_page(checkpoint=checkpoint, stack=stack, kind=kind, language=language)
    trace = transformer.trace(tiny_checkpoint(checkpoint), SENTENCE)
    roles = {
        (role.layer, role.head): role.role
        for layer in range(trace.n_layers(stack))
        for role in head_roles(trace.attention(stack, layer, kind))
    }
    metadata = drawn[-1]
    assert metadata["kind"] == "heads" and len(metadata["tiles"]) == len(roles)
    named = [tuple(place) for place in metadata["named"]]
    assert named[0] == (0, 0), "the selected head"
    patterns = [roles[place] for place in named]
    assert len(set(patterns)) == len(patterns) and "none" not in patterns[1:]
    text = page_text("heads") if language == "en" else None
    for tile in metadata["tiles"]:
        place = tile["layer"], tile["head"]
        assert bool(tile.get("clear")) == bool(tile["caption"]) == ("colour" in tile)
        assert "colour" in tile or roles[place] == "none"
        assert tile["title"] and tile["sentence"]
        if text:
            assert tile["title"] == text["role_title"].get(roles[place], text["no_role"])
    in_legend = {colour for _, colour in metadata.get("groups", [])}
    assert in_legend == {tile["colour"] for tile in metadata["tiles"] if "colour" in tile}
    assert metadata["rows"] == list((trace.prediction if kind == "cross" else trace.tokens(stack)).labels)


def test_some_layers_can_be_chosen_and_the_page_speaks_of_them_alone(
    open_page: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("views.heads.heads_controls.MANY_LAYERS", 2)
    drawn = []
    monkeypatch.setattr("views.heads.maps.show_grid", lambda figure, **_: drawn.append(figure.metadata))
    app = open_page(checkpoint="tiny-gpt", layer="0", head="1")
    assert drawn[-1]["selected"] == [0, 1] and len(drawn[-1]["tiles"]) == 4
    app.slider(key="heads_layers_2").set_range(1, 1).run()
    assert not app.exception and not app.error
    assert [(tile["layer"], tile["head"]) for tile in drawn[-1]["tiles"]] == [(1, 0), (1, 1)]
    assert drawn[-1]["selected"] is None, "what is not shown is not framed"
    assert any("of these 2 heads" in element.value for element in app.markdown)
    assert "heads_a_key" not in drawn[-1], "every head of it has keys of its own"


def test_heads_that_share_their_keys_are_drawn_and_told(family: Callable, open_app: Callable, monkeypatch) -> None:
    monkeypatch.setattr("ui.compute.loading._typed", {})
    checkpoint = family("hf-llama")
    attention = checkpoint.model.decoder.layers[0].self_attention
    size = attention.n_heads // attention.n_key_heads
    assert size > 1
    drawn = []
    monkeypatch.setattr("views.heads.maps.show_grid", lambda figure, **_: drawn.append(figure.metadata))
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(checkpoint.path.parent))
    app = open_app("heads", checkpoint="hf-llama", sentence="The cat sat.", layer="0", head="1", heads_scrolls="true")
    assert not app.exception and not app.error
    assert drawn[-1]["heads_a_key"] == size and drawn[-1]["scrolls"]
    assert any(f"Heads 0 to {size - 1} of this layer share" in element.value for element in app.markdown)


def test_words_for_roles() -> None:
    near = head(0, 0, "none", previous=0.4, next=0.2, sink=float("nan"))
    assert role_counts(ROLES, TEXT) == "In this sentence: 2 × previous token, 1 × sink, 1 × no clear role."
    assert "too short" in role_counts([head(0, 0, "none", broad=float("nan"), sinks=float("nan"))], TEXT)
    named = {(0, 0): "–", (0, 1): "previous 0.60", (1, 0): "sink 0.80", (1, 1): "previous 0.90"}
    assert captions(ranked(ROLES), TEXT) == named
    assert {place_of(one) for one in ranked(ROLES).clear} == {(0, 1), (1, 0), (1, 1)}
    assert captions(ranked([near]), TEXT) == {(0, 0): "previous 0.40"} and not ranked([near]).clear  # pale


def test_every_measure_has_a_name_and_a_definition_with_its_threshold(tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    for stack, kind in trace.attention_kinds():
        roles = head_roles(trace.attention(stack, 0, kind))
        assert set(measures(roles, TEXT)) <= set(TEXT["definition"])
    written = definitions(TEXT)
    for sentence in (
        "at least 0.5",
        "at least 1.5 times",
        "needs 0.7.",
        "needs 0.85 ",
        "(n from 8 to 24, or less if the model reads fewer tokens; seed 0)",
        "in at least 0.5",
    ):
        assert sentence in written
    assert not re.search(r"(?<![_^])\{[a-z]+\}", re.sub(r"\$[^$]*\$", "", written)), "a number is missing"


def test_a_measure_that_does_not_exist_is_no_column(tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(tiny_checkpoint("gpt"), SENTENCE)
    table = role_table(head_roles(trace.attention("decoder", 0)), TEXT)
    assert TEXT["role"]["next"] not in table.columns
    assert TEXT["role"]["monotone"] not in table.columns
    assert isinstance(table, pd.DataFrame) and len(table) == 2
