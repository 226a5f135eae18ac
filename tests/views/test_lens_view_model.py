"""The view model of Lens: the readout of a window, its sentences, and a word's logit as a sum."""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest

import transformer
from transformer.attribution.direct_logit_attribution import attribute, strongest_sources
from transformer.predictions.lens import logit_lens
from views.lens import lens_view_model as module
from views.lens.lens_view_model import (
    LensChoices,
    author_view_model,
    candidate_words,
    first_column,
    ids_that_came,
    lens_view_model,
    position_of,
)
from views.view_models import predicting_token

SENTENCE = "The old man told us a story."
KINDS = ["translator", "gpt", "bert", "sentiment"]


def test_the_example_of_the_docstring_is_true(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    found = doctest.testmod(module)
    assert found.attempted and not found.failed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("colour", ["probability", "rank", "divergence"])
def test_a_window_is_a_part_of_the_whole_readout(tiny_checkpoint, monkeypatch, kind, colour):
    monkeypatch.setattr(module, "MAX_COLUMNS", 5)
    trace = transformer.trace(tiny_checkpoint(kind), SENTENCE)
    whole = logit_lens(trace)
    position = position_of(trace, 4)
    shown = lens_view_model(trace, position, LensChoices(colour=colour))
    first = first_column(trace, position)
    part = whole.part(first, first + 5)
    assert (shown.lens.first, shown.lens.read, shown.selected) == (first, part.read, position - first)
    assert (shown.lens.divergence is not None) == (colour == "divergence")
    for name in ("ids", "probability", "probabilities", "rank", "decided"):
        np.testing.assert_allclose(getattr(shown.lens, name), getattr(part, name), atol=1e-6)
    if colour == "divergence":
        np.testing.assert_allclose(shown.lens.divergence, part.divergence, atol=1e-6)
    assert shown.read == whole.read[position] and shown.token == 4
    tops, last = part.ids[:, :, 0], part.followed
    assert shown.n_never == int((tops[-1] != last).sum())
    assert shown.n_late == int(((tops[-1] == last) & (tops[-2] != last)).sum())
    np.testing.assert_allclose(shown.course.probabilities[0], whole.probability[:, position], atol=1e-6)
    away = lens_view_model(trace, position, LensChoices(first=len(whole.read) - 5 if first == 0 else 0))
    assert away.selected is None or away.read == shown.read
    with pytest.raises(ValueError, match="outside of the columns"):
        _ = lens_view_model(trace, 0, LensChoices(first=2)).read


def test_what_is_said_of_a_position(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    lens = logit_lens(trace)
    shown = lens_view_model(trace, 2)
    assert shown.word == lens.words[-1][2] and shown.probability == pytest.approx(lens.probabilities[-1, 2, 0])
    assert shown.top_from == lens.decided[2] and shown.runner_up == lens.pieces[int(lens.ids[-1, 2, 1])]
    assert not ids_that_came(trace)
    assert shown.earlier == tuple(dict.fromkeys(row[2] for row in lens.words[: shown.top_from]))
    forced = transformer.trace(tiny_checkpoint("translator"), SENTENCE, "Le chat.")
    came = lens_view_model(forced, 1, LensChoices(came=True))
    assert ids_that_came(forced) == forced.prediction.ids and came.word == forced.prediction.displays[1]


@pytest.mark.parametrize("name", ["gpt-en", "bert-en"])
def test_a_text_that_is_only_read_opens_at_one_of_its_words(name):
    """The end of such a text predicts that nothing follows, and its first token itself."""
    trace = transformer.trace(transformer.load(f"checkpoints/{name}"), "My grandmother bakes apple pie every Sunday.")
    shown = lens_view_model(trace, predicting_token(trace))
    assert shown.read.startswith("·") and shown.word.startswith("·")


def test_a_classifier_begins_with_the_whole_sentence(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("sentiment"), SENTENCE)
    whole, alone = lens_view_model(trace, 0), lens_view_model(trace, 3)
    assert whole.is_whole and whole.word == trace.text and whole.top_from >= 0
    assert not alone.is_whole and alone.word == alone.lens.words[-1][3] and predicting_token(trace) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_who_wrote_a_word(tiny_checkpoint, kind):
    trace = transformer.trace(tiny_checkpoint(kind), SENTENCE)
    position = None if kind == "sentiment" else 2
    (word, token), (other, against), *_ = candidate_words(trace, position).items()
    shown = author_view_model(trace, position, token, against)
    found = attribute(trace, position, token=token, against=against)
    assert shown.word == f"{word} − {other}" and shown.found.logit == found.logit
    assert [value for _part, value in shown.bars] == [found.of(part) for part, _value in shown.bars]
    assert len(shown.bars) + shown.n_others == len(found.parts) and shown.strongest in dict(shown.bars)
    for column, part in enumerate(shown.columns):
        for layer in range(len(shown.heads)):
            assert shown.heads[layer, column] == pytest.approx(found.of(part._replace(layer=layer)))
    assert list(shown.sources) == list(strongest_sources(trace, found))
    assert next(iter(candidate_words(trace, position, against).values())) == against
