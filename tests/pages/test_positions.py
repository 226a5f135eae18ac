"""The Positions page: every view of every kind of model, and reordered positions."""

from __future__ import annotations

import json
import re
from base64 import b64decode

import numpy as np
import pytest

import transformer
from charts.toolkit.style import percent_digits
from tests.conftest import ROOT
from tests.pages.conftest import choose_text, codes, is_fine, said
from transformer.interventions.experiment import same_tokens
from transformer.layers.positional_encodings import measured_position_scores, reordered_positions, without_positions
from transformer.predictions.answer_probabilities import prediction_rows, read_answer
from transformer.runs.inputs import prompt_ids
from ui.words.texts import page_text
from views.positions import another_order

TEXT = page_text("positions")
OWN = {"tiny-translator": "sinusoidal", "tiny-gpt": "learned", "tiny-bert": "rotary", "tiny-sentiment": "relative"}
VIEWS = {
    "sinusoidal": ("order", "heatmap", "waves", "similarity", "sum", "distance"),
    "learned": ("order", "heatmap", "waves", "similarity", "sum", "distance"),
    "rotary": ("order", "heatmap", "angles", "distance"),
    "relative": ("order", "bias", "distance"),
}
SENTENCE = "The old man told us a story."


def with_pairs(run, monkeypatch):
    """Return the result of ``run``, and the pairs of tokens that swapped positions meanwhile."""
    pairs, pair_of = [], another_order._pair
    monkeypatch.setattr(another_order, "_pair", lambda *about: pairs.append(pair_of(*about)) or pairs[-1])
    return run(), pairs


def show(app, view):
    choose_text(app, "positions view", view)
    return app.run()


@pytest.mark.parametrize("checkpoint", OWN)
def test_every_view_of_the_own_scheme(open_app, checkpoint):
    app = open_app("positions", checkpoint=checkpoint, sentence=SENTENCE, token="2")
    for view in VIEWS[OWN[checkpoint]]:
        is_fine(show(app, view))
    assert TEXT["own"].format(scheme=TEXT[OWN[checkpoint]]) in said(app)
    assert TEXT["own"].format(scheme=TEXT[OWN[checkpoint]]) not in said(show(app, "order"))


@pytest.mark.parametrize("checkpoint", OWN)
def test_every_model_opens_on_another_order_and_a_rotary_one_shows_both_schemes(open_app, checkpoint):
    app = open_app("positions", checkpoint=checkpoint, sentence=SENTENCE)
    assert app.session_state["positions view"] == "order" and TEXT["both_added"] not in said(app)
    is_fine(show(app, "heatmap"))
    assert (TEXT["both_added"] in said(app)) == (TEXT["both_turned"] in said(app)) == (OWN[checkpoint] == "rotary")


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
        choose_text(app, "order change", change)
        is_fine(show(app, "order"))
    assert TEXT["attends_without"].split(":")[0] in said(app) and TEXT["attends"].split(":")[0] not in said(app)
    loaded = tiny_checkpoint(checkpoint)
    stacks = ("encoder", "decoder") if checkpoint == "tiny-translator" else transformer.trace(loaded, SENTENCE).stacks
    edits = [edit for stack in stacks for edit in without_positions(loaded.model, stack)]
    answer = transformer.trace(loaded, SENTENCE, edits=edits).text
    written = answer.removeprefix(SENTENCE) if checkpoint == "tiny-gpt" else answer
    assert uncoloured(" ".join(written.split())) in uncoloured(said(app))


def uncoloured(text):
    """Return text without the marks of colours, and without any brackets."""
    return re.sub(r":orange\[|[\[\]]", "", text)


@pytest.mark.parametrize("checkpoint", OWN)
def test_another_order_begins_with_two_words_that_change_places(open_app, tiny_checkpoint, checkpoint, monkeypatch):
    app, (pair, *_) = with_pairs(
        lambda: show(open_app("positions", checkpoint=checkpoint, sentence=SENTENCE), "order"), monkeypatch
    )
    is_fine(app)
    loaded = tiny_checkpoint(checkpoint)
    trace = transformer.trace(loaded, SENTENCE)
    stack = trace.stacks[0]
    tokens = trace.tokens(stack)
    assert len(set(pair)) == 2 and all(any(map(str.isalnum, tokens[index].text)) for index in pair)
    n_read = len(tokens) if loaded.config.has_encoder else len(prompt_ids(loaded, SENTENCE))
    moved = list(range(n_read))
    moved[pair[0]], moved[pair[1]] = pair[1], pair[0]
    after = transformer.trace(loaded, SENTENCE, edits=reordered_positions(loaded.model, stack, moved))
    answers = read_answer(trace), read_answer(after)
    for answer in answers:
        written = " ".join(answer.text.split()) or " ".join(part.display for part in answer.parts)
        assert uncoloured(written) in uncoloured(said(app))
    if answers[0].parts:
        assert TEXT["same" if answers[0].text == answers[1].text else "changed"] in said(app)
    else:
        assert TEXT["no_blank"] in said(app)
    followed = max(pair) if stack == "decoder" else min(pair)
    weights = [one.attention(stack, 0, "self").weights[:, followed, :n_read] for one in (trace, after)]
    head = np.abs(weights[0] - weights[1]).sum(axis=1).argmax()
    assert TEXT["attends"].format(token=tokens[followed].display, head=head) in said(app)
    reached = followed + 1 if stack == "decoder" else n_read
    assert not weights[0][:, reached:].any() and not weights[1][:, reached:].any()
    figure = json.loads(app.get("plotly_chart")[0].proto.spec)
    (cells,) = [one for one in figure["data"] if one["type"] == "heatmap"]
    drawn = np.frombuffer(b64decode(cells["z"]["bdata"]), dtype=cells["z"]["dtype"]).reshape(2, -1)
    np.testing.assert_allclose(drawn, [one[head][:reached] for one in weights], atol=1e-6)


@pytest.mark.parametrize(
    "checkpoint, sentence, written",
    [
        ("en-fr", "The cat sat on the mat.", "Le :orange[tapis] s'assit sur le :orange[chat]."),
        ("en-fr", "My grandmother bakes apple pie every Sunday.", "Ma grand-mère s'arrange chaque :orange[pomme]"),
        ("en-fr-2017", "Tom loves Mary.", ":orange[Mary] aime :orange[Tom]."),
    ],
)
def test_the_page_opens_on_a_swap_that_changes_the_output(open_app, monkeypatch, checkpoint, sentence, written):
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = open_app("positions", checkpoint=checkpoint, sentence=sentence)
    is_fine(app)
    assert TEXT["changed"] in said(app) and written in said(app)


@pytest.mark.parametrize("checkpoint", OWN)
def test_the_page_begins_with_how_this_model_encodes_the_order(open_app, checkpoint):
    app = open_app("positions", checkpoint=checkpoint, sentence=SENTENCE)
    titles = [element.value for element in app.markdown if element.value.startswith("#### ")]
    assert titles[0] == f"#### {TEXT[f'answer_{OWN[checkpoint]}']}"
    assert set(another_order.REORDERED) <= {name.removeprefix("answer_") for name in TEXT}
    assert (TEXT["causal_note"] in said(app)) == (checkpoint == "tiny-gpt"), "its mask is not reordered"


def test_of_a_complete_text_the_page_compares_how_probable_it_is(open_app, monkeypatch):
    """gpt-en ends this text at once in any order, which would look as if the order made no difference."""
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    sentence, gpt = "My grandmother bakes apple pie every Sunday.", transformer.load(ROOT / "checkpoints" / "gpt-en")
    app, (pair, *_) = with_pairs(lambda: open_app("positions", checkpoint="gpt-en", sentence=sentence), monkeypatch)
    is_fine(app)
    trace = transformer.trace(gpt, sentence)
    order = list(range(len(trace.target)))
    order[pair[0]], order[pair[1]] = pair[1], pair[0]
    changed = same_tokens(trace, reordered_positions(gpt.model, "decoder", order[: len(prompt_ids(gpt, sentence))]))
    question = prediction_rows(trace)
    shares = [np.exp(question.chosen(question.log_probabilities(one)).mean()) for one in (trace, changed)]
    assert shares[1] < 0.6 * shares[0] and TEXT["text_less"] in said(app)
    for share in shares:
        assert TEXT["text_share"].format(probability=percent_digits(share)) in said(app)


def test_below_each_token_is_its_position_before_and_after(open_app):
    swap = {"swap first": "1", "swap second": "3"}
    app = open_app("positions", checkpoint="tiny-translator", sentence=SENTENCE, **swap)
    names = json.loads(app.get("plotly_chart")[0].proto.spec)["layout"]["xaxis"]["ticktext"]
    positions = [name.rpartition("<br>")[2] for name in names]
    assert positions[:5] == ["0", "1 → 3", "2", "3 → 1", "4"]


def test_beside_the_two_heatmaps_stand_the_angles_of_the_token_that_was_clicked(open_app):
    for place, turned in ((2, "2"), (5, "5")):  # the first pair is rotated by one radian per position
        app = show(open_app("positions", checkpoint="tiny-bert", sentence=SENTENCE, token=str(place)), "heatmap")
        assert f"at position **{place}**" in said(app) and f"is rotated by **{turned}** rad and pair" in said(app)


def test_an_address_says_which_two_change_places(open_app, monkeypatch):
    swap = {"swap first": "0", "swap second": "2"}
    app, pairs = with_pairs(
        lambda: open_app("positions", checkpoint="tiny-translator", sentence=SENTENCE, **swap), monkeypatch
    )
    is_fine(app)
    assert set(pairs) == {(0, 2)}


def test_a_click_on_a_card_makes_it_one_of_the_two(monkeypatch):
    pair = {"swap first": 1, "swap second": 4}
    movable = [[None, 1, 2, 3, 4, 5], [None, 1, 2, 3, 5, 4]]  # a special token stays where it is
    monkeypatch.setattr(another_order.choice, "put", pair.__setitem__)
    for row, card, wanted in ((0, 3, (4, 3)), (0, 3, (4, 3)), (0, 0, (4, 3)), (1, 4, (3, 5))):
        another_order._take(movable, tuple(pair.values()), row, card)
        assert tuple(pair.values()) == wanted


def test_one_token_has_nothing_to_change_places_with(open_app, tiny_tokenizer):
    assert len(tiny_tokenizer.encode("a")) == 1
    app = open_app("positions", checkpoint="tiny-translator", sentence="a")
    is_fine(show(app, "order"))
    assert TEXT["too_short"] in said(app)


@pytest.mark.parametrize("checkpoint", OWN)
def test_the_snippet_runs(open_app, run_snippet, tiny_checkpoint, checkpoint):
    app = open_app("positions", checkpoint=checkpoint, sentence=SENTENCE)
    assert run_snippet(codes(app)[-1]).strip()


def test_a_tasks_prefix_stays_where_it_is(open_app, monkeypatch):
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    sentence = "translate English to French: The cat sat on the mat."
    app, (pair, *_) = with_pairs(
        lambda: open_app("positions", checkpoint="t5-small-tasks", sentence=sentence), monkeypatch
    )
    is_fine(app)
    tokens = transformer.trace(transformer.load(ROOT / "checkpoints" / "t5-small-tasks"), sentence).tokens("encoder")
    assert [tokens[index].text for index in pair] == [" cat", " mat"]


def test_a_note_that_the_page_has_is_not_said_again_below_the_answers(open_app, tiny_checkpoint):
    app = open_app("positions", checkpoint="tiny-translator", sentence=SENTENCE)
    notes = [note for note in transformer.trace(tiny_checkpoint("tiny-translator"), SENTENCE).notes if "end" in note]
    assert notes, "an untrained model does not know when to stop"
    assert said(app).count(notes[0]) == 1
