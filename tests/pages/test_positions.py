"""The Positions page: every scheme and view for every kind of model, and the model with other positions."""

from __future__ import annotations

import pytest

import transformer
from tests.pages.conftest import codes, is_fine, said
from tests.pages.nasty import EMPTY, NASTY, TOO_LONG
from transformer.analysis.position_edits import without_positions
from transformer.analysis.position_scores import measured_position_scores
from ui.words.texts import page_text

TEXT = page_text("positions")
OWN = {"tiny-translator": "sinusoidal", "tiny-gpt": "learned", "tiny-bert": "rotary", "tiny-sentiment": "relative"}
VIEWS = {
    "sinusoidal": ("heatmap", "waves", "similarity", "sum", "distance", "order"),
    "learned": ("heatmap", "waves", "similarity", "sum", "distance", "order"),
    "rotary": ("angles", "distance", "order"),
    "relative": ("bias", "distance", "order"),
    "alibi": ("distance",),
}
SENTENCE = "The old man told us a story."


def show(app, view):
    app.session_state["positions view"] = view
    return app.run()


@pytest.mark.parametrize("checkpoint", OWN)
def test_every_view_of_the_own_scheme(open_app, checkpoint):
    app = open_app("positions", checkpoint=checkpoint, sentence=SENTENCE, token="2")
    for view in VIEWS[OWN[checkpoint]]:
        is_fine(show(app, view))
    assert TEXT["own"].format(scheme=TEXT[OWN[checkpoint]]) in said(app)


@pytest.mark.parametrize("checkpoint", ["tiny-translator", "tiny-sentiment"])
def test_other_schemes_say_whose_they_are(open_app, checkpoint):
    app = open_app("positions", checkpoint=checkpoint, sentence=SENTENCE)
    lenders = {scheme: name for name, scheme in OWN.items()}
    for scheme in VIEWS:
        if scheme == OWN[checkpoint]:
            continue
        app.session_state["scheme"] = scheme
        app.run()
        for view in VIEWS[scheme]:
            if view not in ("sum", "order") and (scheme, view) != ("relative", "distance"):
                is_fine(show(app, view))
        if scheme in ("learned", "relative"):
            assert f"another checkpoint: **{lenders[scheme]}**" in said(app)
        else:
            assert "this model does not compute it" in said(app)


@pytest.mark.parametrize("checkpoint", OWN)
def test_scores_by_distance_are_the_measured_ones(open_app, tiny_checkpoint, checkpoint):
    app = show(open_app("positions", checkpoint=checkpoint, sentence=SENTENCE), "distance")
    is_fine(app)
    loaded = tiny_checkpoint(checkpoint)
    stack = "decoder" if checkpoint == "tiny-gpt" else "encoder"
    ids = [token.id for token in transformer.trace(loaded, SENTENCE).tokens(stack) if not token.special]
    values, distances = measured_position_scores(loaded, ids, stack=stack, n_positions=64)
    head = int((values.max(axis=1) - values.mean(axis=1)).argmax())
    best = int(distances[values[head].argmax()])
    wanted = TEXT["distance_strongest"].format(head=head, distance=f"{best:+d}".replace("-", "−") if best else "0")
    assert wanted in [element.value for element in app.markdown]


@pytest.mark.parametrize("checkpoint", OWN)
def test_the_model_is_asked_again_with_other_positions(open_app, tiny_checkpoint, checkpoint):
    app = open_app("positions", checkpoint=checkpoint, sentence=SENTENCE)
    changes = ["swap", "shuffle", "reverse", "remove"] + (["remove_all"] if checkpoint == "tiny-translator" else [])
    for change in changes:
        app.session_state["order change"] = change
        is_fine(show(app, "order"))
    loaded = tiny_checkpoint(checkpoint)
    stacks = ("encoder", "decoder") if checkpoint == "tiny-translator" else transformer.trace(loaded, SENTENCE).stacks
    edits = [edit for stack in stacks for edit in without_positions(loaded.model, stack)]
    answer = transformer.trace(loaded, SENTENCE, edits=edits).text
    written = answer.removeprefix(SENTENCE) if checkpoint == "tiny-gpt" else answer
    assert " ".join(written.split()) in said(app)


def test_two_tokens_change_places(open_app):
    app = open_app("positions", checkpoint="tiny-translator", sentence="The old man told us a story.")
    show(app, "order")
    first, second = (box for box in app.selectbox if box.label in (TEXT["first"], TEXT["second"]))
    first.set_value(0)
    second.set_value(0)
    is_fine(app.run())
    assert TEXT["same"] in said(app)  # a token that changes places with itself changes nothing


def test_one_token_has_nothing_to_change_places_with(open_app, tiny_tokenizer):
    assert len(tiny_tokenizer.encode("a")) == 1
    app = open_app("positions", checkpoint="tiny-translator", sentence="a")
    is_fine(show(app, "order"))
    assert TEXT["too_short"] in said(app)


@pytest.mark.parametrize("sentence", NASTY)
def test_odd_sentences(open_app, sentence):
    app = open_app("positions", checkpoint="tiny-translator", sentence=sentence)
    for view in VIEWS["sinusoidal"]:
        is_fine(show(app, view))


@pytest.mark.parametrize("sentence", [*EMPTY, TOO_LONG])
def test_what_cannot_be_read_gets_a_sentence(open_app, sentence):
    app = open_app("positions", checkpoint="tiny-sentiment", sentence=sentence)
    assert not app.exception and not app.error and len(app.warning) == 1


@pytest.mark.parametrize("checkpoint", OWN)
def test_the_snippet_runs(open_app, run_snippet, tiny_checkpoint, checkpoint):
    app = open_app("positions", checkpoint=checkpoint, sentence=SENTENCE)
    assert run_snippet(codes(app)[-1]).strip()
