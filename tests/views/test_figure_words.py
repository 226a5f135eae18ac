"""Every text of every figure is in charts/words, and nothing else is."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from charts.figures import decoding_figures, live_curves, residual_figures, training_curves, vocabulary
from charts.figures import units as unit_figures
from charts.toolkit import words
from charts.toolkit.figure_table import figure_table
from charts.toolkit.style import escape
from tests.figures import WORDS, every_figure, sequence, small_lens
from ui.words.texts import ROOT
from ui.words.translations import read_texts
from views.attention import attention_row_figures
from views.lens import lens_figures

PLOTLY = {"name", "text", "hovertext", "hovertemplate", "texttemplate", "customdata", "ticktext"}
ALTAIR = {"title", "domain", "curve"}
# Values that tests pass to the figures, which therefore are not texts of the figures.
GIVEN = {
    "<s>",
    "</s>",
    "<b>",
    "<b>x",
    "<b>good",
    "bad",
    "<i>",
    "layer <0>",
    "healthy",
    "learned",
    "greedy",
    "this",
    "norm",
    "the first 5 numbers",
    "all 16 numbers",
    "other",
    *("before: <b>", "after", "Norm", "mean", "std", "value", "the first 8 dimensions", "all 16 dimensions"),
    *("logit", "hidden value", "unit 5", "unit 9", "(unit 5)", "a   (unit 9)"),
}
GIVEN |= {
    "previous <token>",
    "previous <token> (0.75)",
    "cross",
    "incompre…",
    "outside",
    "words",
    "BLEU",
    "nan",
    "GELU(x) = x · Φ(x)",
    *("embedding", "self-attention", "feed-forward", "0 self-attention", "0 feed-forward", "layer 0", "encoder 0"),
    *(f"{kind} {layer}" for kind in ("encoder", "cross") for layer in range(3)),
    *("sink share", "no clear role", "<b>cross</b>", "loss", "step"),
    *WORDS,
}


def is_english(line: str) -> bool:
    """Return whether words remain without placeholders, tags and tokens (which begin with ·)."""
    if line.removeprefix("%{x}, ").removeprefix("%{y}, ").removesuffix(", %{x}") in {*GIVEN, *map(escape, GIVEN)}:
        return False
    rest = re.sub(r"%\{[^}]*\}|</?(b|i|br|sub)>|&(\w+|#\d+);|·\S+", " ", line)
    if rest.strip() in GIVEN:
        return False
    return bool(re.search(r"[A-Za-z]{3}", rest))


def curves() -> dict:
    history = pd.DataFrame(
        {
            "step": [0, 1],
            "train_loss": [2.0, 1.0],
            "dev_loss": [2.5, 1.5],
            "dev_score": [1.0, 2.0],
            "learning_rate": 0.1,
        }
    )
    steps, loss = [0, 1], np.array([2.0, 1.0])
    return {
        "loss_curves": training_curves.loss_curves(history),
        "score_curve": training_curves.score_curve(history, score="BLEU"),
        "rate_curve": training_curves.rate_curve(history),
        "repeated_loss_curve": training_curves.repeated_loss_curve(history.assign(value=loss)),
        "live_loss": live_curves.live_loss(loss, steps=steps, last_step=2),
        "live_shares": live_curves.live_shares({"words": loss / 4}, steps=steps, last_step=2),
    }


def variants(tokens, causal_view) -> dict:
    """Return figures that contain other texts than with the arguments of the fixture."""
    classes = small_lens(of_classes=True)
    rows = np.linspace(-1, 1, len(tokens) * 16).reshape(len(tokens), 16)
    return {
        "lens_rank": lens_figures.lens_grid(small_lens(), colour="rank"),
        "lens_kl": lens_figures.lens_grid(small_lens(), colour="divergence"),
        "lens_classes": lens_figures.lens_grid(classes),
        "lens_classes_rank": lens_figures.lens_grid(classes, colour="rank"),
        "attention_of": decoding_figures.step_attention(
            rows[:, 0] ** 2, tokens=tokens, allowed=None, of="layer 1, head 2"
        ),
        "no_mask": attention_row_figures.score_pipeline(causal_view, head=0, row=4),
        "projection": vocabulary.vocabulary_projection(rows[:, :2], displays=["·a"] * len(rows), tokens=tokens[:1]),
        "growth": residual_figures.residual_growth(
            np.abs(rows[:3, : len(tokens)]), steps=["embedding"] * 3, tokens=tokens
        ),
        "units": unit_figures.hidden_heatmap(rows, tokens=tokens, units=list(range(16))),
    }


@pytest.fixture
def in_french(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "_read", lambda: read_texts(ROOT, "figures", "fr"))


@pytest.fixture(scope="module")
def french(tokens, target, causal_view, candidates) -> dict:
    """Return every figure, drawn in French."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "_read", lambda: read_texts(ROOT, "figures", "fr"))
        return {**every_figure(tokens, target, causal_view, candidates), **curves()}


UNSEEN = (("name", "note"), ("name", "focus"))  # names of annotations and frames, used only by our code


def lines(figure: object) -> Iterator[str]:
    """Return every line of text in a figure, without tags."""
    if type(figure).__module__.startswith("altair"):
        return _lines(figure.to_dict(), ALTAIR)
    # Part by part: the figure's own to_plotly_json would turn the arrays into base64 text.
    return _lines([figure.layout.to_plotly_json(), *(trace.to_plotly_json() for trace in figure.data)], PLOTLY)


def _lines(node: object, keys: set[str], key: str = "") -> Iterator[str]:
    if isinstance(node, dict):
        for name, value in node.items():
            if name != "template" and (name, value) not in UNSEEN:
                yield from _lines(value, keys, name)
    elif isinstance(node, str):
        if key in keys:
            yield from re.split(r"<br>|\n", node.replace("<extra></extra>", ""))
    elif key == "title" and isinstance(node, list):  # a single text that spans several lines
        yield " ".join(node)
    elif isinstance(node, list | tuple | np.ndarray):
        for value in node:
            yield from _lines(value, keys, key)


def test_every_text_of_every_figure_is_marked(
    tokens, target, causal_view, candidates, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked = {section: {key: f"⟦{text}⟧" for key, text in each.items()} for section, each in words.english().items()}
    monkeypatch.setattr(words, "_read", lambda: marked)
    made = {**every_figure(tokens, target, causal_view, candidates), **variants(tokens, causal_view), **curves()}
    found = {(line, name) for name, figure in made.items() for line in lines(figure)}
    assert sum("⟦" in line for line, _ in found) > 200
    # A marked text may take two lines.
    missing = sorted(f"{name}: {line}" for line, name in found if not {"⟦", "⟧"} & {*line} and is_english(line))
    assert not missing, "move them to charts/words/en.toml:\n" + "\n".join(missing)


def test_a_figure_in_french(figures: dict, french: dict) -> None:
    before, after = figures["candidate_bars"], french["candidate_bars"]
    assert before.layout.xaxis.title.text == "next-token probability", "the figure itself stays as it is"
    assert after.layout.xaxis.title.text == "probabilité du jeton suivant"
    assert [list(trace.x) for trace in after.data] == [list(trace.x) for trace in before.data]
    assert list(after.layout.yaxis.ticktext)[:-1] == list(before.layout.yaxis.ticktext)[:-1], (
        "tokens are not translated"
    )
    assert after.layout.yaxis.ticktext[-1] == "tous les autres"
    assert "0.100 coupé" in [text for trace in after.data for text in (trace.text or ())]
    hovers = [
        text
        for trace in french["search_tree"].data
        for text in (trace.customdata if trace.customdata is not None else ())
    ]
    assert (
        "<b>·&lt;b&gt;</b><br>log p = −0.9<br>Σ log p = −0.9<br>score (÷ pénalité de longueur) = −0.9<br>"
        in "".join(hovers)
    )
    assert list(french["lens_grid"].layout.yaxis.ticktext)[:2] == ["plongement", "couche 0"]


def test_numbers_are_never_touched(figures: dict, french: dict) -> None:
    for name in figures:
        for one, other in zip(figures[name].data, french[name].data, strict=True):
            for axis in ("x", "y", "z"):
                if getattr(one, axis, None) is not None:
                    np.testing.assert_array_equal(getattr(one, axis), getattr(other, axis), err_msg=name)


def test_an_altair_figure_in_french(french: dict) -> None:
    specification = str(french["loss_curves"].to_dict())
    for said in ("perte (nats par jeton)", "lots d’entraînement", "jeu de validation", "pas d’entraînement", "courbe"):
        assert said in specification
    assert "training batches" not in specification and "'title': 'step'" not in specification
    assert "perte" in str(french["live_loss"].to_dict()) and "part" in str(french["live_shares"].to_dict())


def test_a_token_that_is_also_a_word_of_a_figure_stays(in_french: None) -> None:
    typed = ("<s>", "before", "layer", "layer 0", "kept")
    figure = unit_figures.hidden_heatmap(np.eye(5), tokens=sequence(typed))
    assert figure.layout.yaxis.title.text == "jeton" and list(figure.layout.yaxis.ticktext)[1:] == list(typed[1:])


def test_a_figure_as_a_table_in_french(french: dict, in_french: None) -> None:
    table = figure_table(french["candidate_bars"])
    assert "y: candidat" in table and "texte" in table and "tous les autres" in set(table["y: candidat"])


def test_a_table_in_french(monkeypatch: pytest.MonkeyPatch) -> None:
    def script() -> None:
        import pandas as pd
        import streamlit as st

        from ui.show.figures import show_table

        table = pd.DataFrame({"text": ["step"], "Σ log p": [1.5], "Schritt": [1]})
        show_table(table, name="some", column_config={"text": st.column_config.TextColumn(help="how")})

    def shown() -> tuple[pd.DataFrame, str]:
        app = AppTest.from_function(script).run()
        assert not app.exception
        return app.dataframe[0].value, app.dataframe[0].proto.columns

    assert list(shown()[0]) == ["text", "Σ log p", "Schritt"]
    monkeypatch.setattr("ui.words.texts._language_of_run", lambda: "fr")
    table, configured = shown()
    assert list(table) == ["texte", "Σ log p", "Schritt"] and table.iloc[0, 0] == "step"
    assert "texte" in json.loads(configured) and "text" not in json.loads(configured)


def test_two_sessions_at_once_get_a_figure_each_in_its_own_language(tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    session = threading.local()
    monkeypatch.setattr("ui.words.texts._language_of_run", lambda: getattr(session, "language", "en"))
    said = {"en": "token", "fr": "jeton"}

    def titles(language: str) -> set[str]:
        session.language = language
        return {
            unit_figures.hidden_heatmap(np.eye(len(tokens)), tokens=tokens).layout.yaxis.title.text for _ in range(30)
        }

    with ThreadPoolExecutor(2) as threads:
        found = dict(zip(said, threads.map(titles, said), strict=True))
    assert found == {language: {title} for language, title in said.items()}
    assert unit_figures.hidden_heatmap(np.eye(len(tokens)), tokens=tokens).layout.yaxis.title.text == "token", (
        "a notebook"
    )
