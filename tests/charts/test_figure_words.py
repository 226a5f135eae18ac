"""Every English text of every figure has an entry in ``ui/words/en/charts.toml``, so that languages can say it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from charts.figures import (
    attention_row,
    decoding,
    feed_forward,
    lens,
    live_curves,
    residual,
    training_curves,
    vocabulary,
)
from charts.figures.attention_trust import NAMES
from charts.toolkit.style import escape
from tests.charts.conftest import WORDS, small_lens
from ui.words import figure_words
from ui.words.phrases import speaker_of

TEXTS = Path(__file__).resolve().parents[2] / "ui" / "words"
TABLES = {code: tomllib.loads((TEXTS / code / "charts.toml").read_text(encoding="utf-8")) for code in ("en", "fr")}
# What the figures of the tests are given, and so do not say by themselves.
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
    "other",
}
GIVEN |= {
    "previous <token>",
    "previous <token> (0.75)",
    "cross",
    "outside",
    "words",
    "BLEU",
    "nan",
    "GELU(x) = x · Φ(x)",
    *WORDS,
}


def is_english(line: str) -> bool:
    """Whether words remain when all that is data is taken out: placeholders, tags, tokens (they begin with ·)."""
    if line.removeprefix("%{x}, ").removesuffix(", %{x}") in {escape(one) for one in GIVEN}:
        return False
    rest = re.sub(r"%\{[^}]*\}|</?(b|i|br)>|&(\w+|#\d+);|·\S+", " ", line)
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
        "live_loss": live_curves.live_loss(loss, steps=steps, last_step=2),
        "live_shares": live_curves.live_shares({"words": loss / 4}, steps=steps, last_step=2),
    }


def variants(tokens, causal_view) -> dict:
    """Figures that say something else than with the arguments of the fixture."""
    classes = small_lens(of_classes=True)
    rows = np.linspace(-1, 1, len(tokens) * 16).reshape(len(tokens), 16)
    return {
        "lens_rank": lens.lens_grid(small_lens(), colour="rank"),
        "lens_kl": lens.lens_grid(small_lens(), colour="divergence"),
        "lens_classes": lens.lens_grid(classes),
        "lens_classes_rank": lens.lens_grid(classes, colour="rank"),
        "attention_of": decoding.step_attention(rows[:, 0] ** 2, tokens=tokens, allowed=None, of="layer 1, head 2"),
        "no_mask": attention_row.score_pipeline(causal_view, head=0, row=4),
        "projection": vocabulary.vocabulary_projection(rows[:, :2], displays=["·a"] * len(rows), tokens=tokens[:1]),
        "growth": residual.residual_growth(np.abs(rows[:3, : len(tokens)]), steps=["embedding"] * 3, tokens=tokens),
        "units": feed_forward.hidden_heatmap(rows, tokens=tokens, units=list(range(16))),
    }


def test_every_text_of_every_figure_is_in_the_table(figures: dict, tokens, causal_view) -> None:
    say = speaker_of(TABLES["en"])
    figures = {**figures, **variants(tokens, causal_view)}
    lines = {(line, name) for name, figure in figures.items() for line in figure_words.lines_of(figure, kind="plotly")}
    lines |= {
        (line, name) for name, figure in curves().items() for line in figure_words.lines_of(figure, kind="altair")
    }
    assert sum(is_english(line) for line, _ in lines) > 200
    lines |= {(name, "aligned_measures") for name in NAMES.values()}
    missing = sorted(f"{name}: {line}" for line, name in lines if is_english(line) and say(line) is None)
    assert not missing, "add to ui/words/en/charts.toml and to its translations:\n" + "\n".join(missing)


def test_the_english_table_says_what_is_there() -> None:
    say = speaker_of(TABLES["en"])
    for english, said in TABLES["en"].items():
        assert english == said
        assert say(english) == english, "another entry takes this text, and would take it in every language"


def test_a_figure_in_french(figures: dict) -> None:
    say = speaker_of(TABLES["fr"])
    before = figures["candidate_bars"]
    after = figure_words._plotly(before, say)
    assert before.layout.xaxis.title.text == "probability of coming next", "the figure itself stays as it is"
    assert after.layout.xaxis.title.text == "probabilité de venir ensuite"
    assert [list(trace.x) for trace in after.data] == [list(trace.x) for trace in before.data]
    assert list(after.layout.yaxis.ticktext)[:-1] == list(before.layout.yaxis.ticktext)[:-1], (
        "tokens are not translated"
    )
    assert after.layout.yaxis.ticktext[-1] == "tous les autres"
    assert "0.1 coupé" in [text for trace in after.data for text in (trace.text or ())]
    tree = figure_words._plotly(figures["search_tree"], say)
    hovers = [text for trace in tree.data for text in (trace.customdata if trace.customdata is not None else ())]
    assert (
        "<b>·&lt;b&gt;</b><br>log p = -0.9<br>Σ log p = -0.9<br>score (÷ pénalité de longueur) = -0.9<br>"
        in "".join(hovers)
    )


@pytest.mark.parametrize("name", ["residual_growth", "word_course", "lens_grid", "map_strip"])
def test_numbers_are_never_touched(figures: dict, name: str) -> None:
    before = figures[name]
    after = figure_words._plotly(before, speaker_of(TABLES["fr"]))
    for one, other in zip(before.data, after.data, strict=True):
        for axis in ("x", "y", "z"):
            if getattr(one, axis, None) is not None:
                np.testing.assert_array_equal(getattr(one, axis), getattr(other, axis))


def test_an_altair_figure_in_french() -> None:
    figure = figure_words._altair(curves()["loss_curves"], speaker_of(TABLES["fr"]))
    specification = str(figure.to_dict())
    for french in ("perte (nats par jeton)", "lots d’entraînement", "jeu de développement", "étape", "courbe"):
        assert french in specification
    assert "training batches" not in specification and "'title': 'step'" not in specification


def test_a_token_that_is_also_a_word_of_a_figure_stays() -> None:
    say = speaker_of(TABLES["fr"])
    assert figure_words._in_list(["<s>", "before", "layer"], say) == ["<s>", "before", "layer"]
    assert figure_words._in_list(["layer 0", "layer 1"], say) == ["couche 0", "couche 1"]
    assert figure_words._in_list([["·the", "kept"], ["x", "pruned"]], say) == [["·the", "gardé"], ["x", "élagué"]]


def test_a_table_in_french(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pd.DataFrame({"text": ["step"], "Σ log p": [1.5], "Schritt": [1]})
    assert figure_words.table_for_session(table, {"height": 3}) == (table, {"height": 3})
    monkeypatch.setattr("ui.words.texts._language_of_run", lambda: "fr")
    said, options = figure_words.table_for_session(table, {"column_config": {"text": "how"}})
    assert list(said) == ["texte", "Σ log p", "Schritt"] and said.iloc[0, 0] == "step"
    assert options["column_config"] == {"texte": "how"} and next(iter(table)) == "text"
