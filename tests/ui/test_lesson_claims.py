"""The lessons' statements about the shipped models hold: every number and word, recomputed."""

from __future__ import annotations

import re

import numpy as np
import pytest

import transformer
from tests.conftest import ROOT
from transformer.attention_maps.attention_path import attention_path, output_matrices
from transformer.attribution.attention_trust import compare_with_attention, input_attributions
from transformer.faults.catalogue import diagnosis_of
from transformer.faults.checked_models import checked_model
from transformer.faults.fault_checks import CHECKS
from transformer.faults.faulty_run import experiment_with_bug, padded
from transformer.guests.rotary_positions import plain_rotary
from transformer.heads.head_atlas import head_habits
from transformer.heads.head_roles import head_roles
from transformer.heads.role_files import load_corpus_roles
from transformer.interventions.experiment import answer_under
from transformer.interventions.head_importance import head_effect
from transformer.layers.embedding_space import nearest_rows
from transformer.layers.positional_encodings import angles_of, reordered_positions, without_positions
from transformer.predictions.hypothesis_tree import beam_tree
from transformer.predictions.lens import logit_lens
from transformer.predictions.living_picture_numbers import living_picture_numbers
from transformer.predictions.quantity import quantity_of
from transformer.runs.head_places import Head
from transformer.runs.next_sentence import next_sentence
from transformer.text.sentence_files import read_sentences
from transformer.toy.toy_training import train_toy
from ui.shell.guidance.lesson_bar import nearest_word
from ui.shell.guidance.lessons import Step, find_lesson
from views.heads.heads_sections import BELOW as CARD

RARE = "It is unbelievable."
CAT, TOM, LOVE = "The cat sat on the mat.", "Tom loves Mary.", "I love you."
TOKENS, ORDER, HEAD, HEADS = "01-tokens-and-vectors", "02-positions", "03-one-head", "04-many-heads"
WORTH, ADDS, OTHERS = "05-what-a-map-is-worth", "06-what-a-layer-adds", "11-other-models"
WAY, DECODING, MENDING = "00-the-way-of-a-sentence", "07-decoding", "08-break-and-mend"
SHARP, NATURAL = "en-fr-sharp", "en-fr"
ANSWER = "Le chat s'assit sur le tapis."
ONE_HEAD = ("encoder", 2, 2)  # the head of the lesson HEAD: stack, layer, head


@pytest.fixture(scope="module")
def checkpoint() -> transformer.Checkpoint:
    return transformer.load(ROOT / "checkpoints" / SHARP)


@pytest.fixture(scope="module")
def natural() -> transformer.Checkpoint:
    """The model on which a sentence, one head and one layer are followed, and rotary positions are shown."""
    return transformer.load(ROOT / "checkpoints" / find_lesson(HEAD).steps[0].focus["checkpoint"])


@pytest.fixture(scope="module")
def followed(natural) -> transformer.Trace:
    return transformer.trace(natural, CAT)


@pytest.fixture(scope="module")
def sinusoidal() -> transformer.Checkpoint:
    """The model of the lesson about positions."""
    return transformer.load(ROOT / "checkpoints" / "en-fr-2017")


@pytest.fixture(scope="module")
def trace(checkpoint) -> transformer.Trace:
    return transformer.trace(checkpoint, CAT)


def step(name: str, number: int, *, sentence: str) -> Step:
    """Return a step, after checking that it is about that sentence."""
    found = find_lesson(name).steps[number - 1]
    assert found.focus["sentence"] == sentence
    told_on = {WAY: NATURAL, ORDER: "en-fr-2017" if number < 8 else "en-fr", HEAD: NATURAL, ADDS: NATURAL}
    told_on[MENDING] = NATURAL if found.page == "lessons" else SHARP
    assert found.focus["checkpoint"] == told_on.get(name, SHARP)
    return found


def right(name: str, number: int, *, sentence: str) -> str:
    """Return the right choice; if it is a number, check that the French lesson has the same one."""
    english = step(name, number, sentence=sentence)
    french = find_lesson(name, "fr").steps[number - 1]
    said, translated = english.answer, french.answer
    if re.fullmatch(r"[\d.,]+", said):
        assert re.sub(r"\D", "", said) == re.sub(r"\D", "", translated)
    return said


def answer_with(checkpoint, *edits: str, sentence: str = CAT) -> str:
    return answer_under(checkpoint, sentence, transformer.edits_from(checkpoint, edits)).text


def test_how_many_tokens(checkpoint, trace) -> None:
    assert right(TOKENS, 2, sentence=CAT) == str(len(trace.source))
    assert len(CAT.split()) == 6
    capital, small = trace.source[0], trace.source[4]
    assert (capital.display, small.display) == ("·The", "·the") and capital.id != small.id
    assert right(TOKENS, 3, sentence=CAT).startswith("no, these are two")
    tokenizer = checkpoint.tokenizer
    assert [len(tokenizer.encode(word)) for word in ("unbelievable", "it")] == [6, 1]
    assert step(TOKENS, 4, sentence=RARE).notice.startswith("*unbelievable* needs six")
    assert transformer.trace(checkpoint, RARE).text == "C'est incroyable.", "what is on the projector makes sense"


def test_an_emoji_is_four_bytes(checkpoint) -> None:
    sequence = checkpoint.tokenizer.sequence(checkpoint.tokenizer.encode("I love you 😀!"))
    assert right(TOKENS, 5, sentence="I love you 😀!") == str(sum("⟨" in token.display for token in sequence))
    assert "⟨F0⟩" in sequence.displays


def test_what_is_looked_up(checkpoint, trace) -> None:
    repeated = transformer.trace(checkpoint, "I know that you know that I know.")
    places = [token.index for token in repeated.source if token.display == "·know"]
    rows = repeated.values("encoder.embedding.token")[places]
    assert len(places) == 3 and places[0] == 1 and (rows == rows[0]).all()
    assert right(TOKENS, 6, sentence="I know that you know that I know.") == "no, they are equal"
    size = trace.values("encoder.embedding.token").size
    assert right(TOKENS, 7, sentence=CAT) == f"{size:,}"
    assert "6,000 rows of 256" in step(TOKENS, 7, sentence=CAT).notice
    table = checkpoint.model.encoder.embedding.table.weight.detach().numpy()
    assert table.shape == (6000, 256)


def test_monday_is_near_sunday(checkpoint) -> None:
    sentence = "See you on Monday."
    token = transformer.trace(checkpoint, sentence).source[step(TOKENS, 8, sentence=sentence).focus["token"]]
    table = checkpoint.model.encoder.embedding.table.weight.detach().numpy()
    assert token.display == "·Monday"
    nearest = checkpoint.tokenizer.display(nearest_rows(table, table[token.id], excluded={token.id})[0].id)
    assert right(TOKENS, 8, sentence=sentence) == f"`{nearest}`"


def test_positions(sinusoidal) -> None:
    trace = transformer.trace(sinusoidal, TOM)
    encoding = trace.values("encoder.embedding.position")
    assert (encoding[0, 0::2] == 0).all() and (encoding[0, 1::2] == 1).all()
    step_size = np.abs(np.diff(encoding, axis=0)).mean(axis=0)
    assert step_size[:2].mean() > 100 * step_size[-2:].mean()
    swapped = transformer.trace(
        sinusoidal, TOM, edits=reordered_positions(sinusoidal.model, "encoder", [2, 1, 0, 3, 4])
    )
    assert trace.text == "Tom aime Mary."
    assert right(ORDER, 4, sentence=TOM) == swapped.text


def test_how_alike_two_places_are_depends_on_their_distance_alone(sinusoidal) -> None:
    encoding = transformer.trace(sinusoidal, CAT).values("encoder.embedding.position").astype(np.float64)
    alike = encoding @ encoding.T
    for distance in range(len(alike)):
        np.testing.assert_allclose(np.diag(alike, distance), alike[0, distance], atol=1e-4)
    # sin + i cos: two positions further on is a rotation by fixed angles
    pairs = encoding[:, 0::2] + 1j * encoding[:, 1::2]
    turns = pairs[2:] / pairs[:-2]
    np.testing.assert_allclose(turns, np.broadcast_to(turns[0], turns.shape), atol=1e-4)
    assert right(ORDER, 3, sentence=TOM) == "similarity depends only on distance"


def test_without_positions_the_cat_sits_on_a_cat_and_tom_still_loves_mary(sinusoidal) -> None:
    edits = without_positions(sinusoidal.model, "encoder")
    assert transformer.trace(sinusoidal, CAT).text == ANSWER
    lost = transformer.trace(sinusoidal, CAT, edits=edits).text
    assert lost.split().count("chat") + lost.split().count("chat.") == 2
    assert step(ORDER, 6, sentence=CAT).options["order change"] == "remove"
    assert transformer.trace(sinusoidal, TOM, edits=edits).text == "Tom aime Mary."
    assert step(ORDER, 7, sentence=TOM).options["order change"] == "remove"


def test_rotary_positions_act_in_the_scores_of_attention_alone() -> None:
    rotary = transformer.load(ROOT / "checkpoints" / step(ORDER, 9, sentence=TOM).focus["checkpoint"])
    assert rotary.config.positions == "rotary" and step(ORDER, 8, sentence=TOM).options["positions view"] == "angles"
    before = transformer.trace(rotary, TOM)
    after = transformer.trace(rotary, TOM, edits=reordered_positions(rotary.model, "encoder", [2, 1, 0, 3, 4]))
    assert (before.text, after.text) == ("Tom aime Mary.", "Mary aime Tom.")

    def change(name: str) -> float:
        name = f"encoder.layers.0.{name}"
        return float(np.abs(before.values(name) - after.values(name)).max())

    assert change("residual.in") == change("self_attention.value") == 0 < change("self_attention.scores")
    assert right(ORDER, 9, sentence=TOM) == "the scores of its attention"
    # “with the query at 10 and the key at 8” scores as with 5 and 3, and not as with 3 and 5
    query, key = np.random.default_rng(0).normal(size=(2, rotary.config.d_head // 2, 2)) @ (1, 1j)
    angles = angles_of(plain_rotary(rotary.config.d_head), 11, n_positions=11)
    scores = [
        float((query * np.exp(1j * angles[q]) * np.conj(key * np.exp(1j * angles[k]))).real.sum())
        for q, k in ((5, 3), (10, 8), (3, 5), (5, 5))
    ]
    assert scores[0] == pytest.approx(scores[1]) and min(abs(scores[0] - other) for other in scores[2:]) > 0.01
    assert right(ORDER, 8, sentence=TOM) == "with the query at 10 and the key at 8"


def test_one_head(natural, followed) -> None:
    config, weights, trace = natural.config, followed.attention(*ONE_HEAD[:2]).weights[ONE_HEAD[2]], followed
    for number in range(1, 8):
        aimed = step(HEAD, number, sentence=CAT).focus
        assert (aimed.get("stack", "encoder"), aimed["layer"], aimed["head"]) == ONE_HEAD
        assert aimed["token"] == (4 if number == 4 else 3)
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-5)
    assert right(HEAD, 1, sentence=CAT) == "1"
    assert (trace.source[3].display, trace.source[2].display) == ("·on", "·sat")
    assert weights[3].argmax() == 2 and 0.85 < weights[3, 2] < 0.9  # steps 1 and 6
    assert weights[4].max() < 0.6 and np.sum(weights[4] > 0.1) > 1, "the row of ·the has several bright cells"
    sixth = step(HEAD, 6, sentence=CAT)
    assert "nearly 0.9 to" in sixth.question and "little more than 0.1." in sixth.explanation
    sixth = find_lesson(HEAD, "fr").steps[5]
    assert "près de 0,9 à" in sixth.question and "à peine plus de 0,1" in sixth.explanation
    assert right(HEAD, 2, sentence=CAT) == str(config.d_head)
    assert (config.d_model, config.n_heads) == (256, 8)
    assert right(HEAD, 3, sentence=CAT) == str(weights.size)
    values = trace.values("encoder.layers.2.self_attention.value")[ONE_HEAD[2]]
    context = trace.values("encoder.layers.2.self_attention.context")[ONE_HEAD[2]]
    near = np.linalg.norm(context[3] - values, axis=1)
    assert near.argmin() == 2 and near[2] < np.linalg.norm(context[3] - values.mean(axis=0)) / 4
    assert right(HEAD, 6, sentence=CAT) == "the value of `·sat`"
    assert config.positions == "rotary" and "**after** their rotation" in step(HEAD, 2, sentence=CAT).notice


def test_the_division_keeps_the_order_and_a_row_without_it_is_all_or_nothing(followed) -> None:
    trace = followed
    path = attention_path(trace, *ONE_HEAD[:2], "self", head=ONE_HEAD[2])
    fourth = step(HEAD, 4, sentence=CAT)
    the = fourth.focus["token"]
    assert trace.source[the].display == "·the" and "the row of `·the`" in fourth.do
    without, row = path.weights_without_scaling(the), path.weights[the]
    assert (np.argsort(path.products) == np.argsort(path.scores)).all()
    assert f"here {row.max():.2f} would become {without.max():.2f}." in fourth.explanation
    french = find_lesson(HEAD, "fr").steps[3].explanation
    assert f"ici, {row.max():.2f} deviendrait {without.max():.2f}.".replace("0.", "0,") in french
    assert "a sum of 32 products" in right(HEAD, 4, sentence=CAT)


def test_the_heads_write_into_the_whole_width(natural) -> None:
    matrices, _ = output_matrices(natural, "encoder", 2, "self")
    assert matrices.shape == (8, 32, 256) and right(HEAD, 7, sentence=CAT) == str(matrices.shape[2])


def test_the_causal_mask(followed) -> None:
    trace = followed
    view = trace.attention("decoder", 0)
    assert view.allowed.size == 169 and len(view.query) == 13
    assert right(HEAD, 8, sentence=CAT) == str((~view.allowed).sum())
    for layer in range(3):
        assert (trace.attention("decoder", layer).weights[:, 0, 0] == 1).all()
    assert right(HEAD, 9, sentence=CAT) == "1, in every head"
    others = trace.attention("decoder", 0).weights[:, 1:]
    assert all((others[head] != others[0]).any() for head in range(1, len(others)))


# the heads of the lesson "many heads", and the numbers that it states about them
BACK, FORTH = Head("encoder", "self", 1, 2), Head("encoder", "self", 1, 4)  # one token back, one token forward
RESTS, LIKE_BACK = Head("encoder", "self", 2, 3), Head("encoder", "self", 2, 1)
FOLLOWS, ALIGNS = Head("decoder", "cross", 1, 4), Head("decoder", "cross", 1, 7)
ON_THE_TOKEN_BEFORE, ONE_BACK, BY_CHANCE, ROWS = 90, 44, 7, 1008  # %, %, %, rows
FACTOR, ALIGNED = 0.8, 0.9


def focused(number: int, head: Head, name: str = HEADS) -> Step:
    """Return a step of that lesson, after checking that it is about that head."""
    found = step(name, number, sentence=CAT)
    here = {"stack": "encoder", "kind": "self"} | dict(found.focus)
    assert Head(*(here[name] for name in ("stack", "kind", "layer", "head"))) == head
    return found


def told_in_french(number: int, name: str = HEADS) -> Step:
    return find_lesson(name, "fr").steps[number - 1]


def test_many_heads(checkpoint, trace) -> None:
    config = checkpoint.config
    assert f"**{SHARP}**" in step(HEADS, 1, sentence=CAT).do and "entropy penalty" in checkpoint.card
    assert right(HEADS, 1, sentence=CAT) == str(config.n_encoder_layers * config.n_heads)
    assert config.n_decoder_layers * config.n_heads == 24
    focused(1, BACK)
    view = trace.attention("encoder", BACK.layer)
    assert (view.weights[BACK.head, 1:].argmax(axis=-1) == np.arange(7)).all(), "a stripe left of the diagonal"
    assert head_roles(view)[BACK.head].role == "previous"
    assert right(HEADS, 2, sentence=CAT) == "every token attends to the one before it"
    assert focused(3, BACK).focus["token"] == 0
    rests = view.weights[BACK.head, 0]
    assert view.key.displays[rests.argmax()] == "</s>" and rests.max() > 0.9
    assert right(HEADS, 3, sentence=CAT) == "to `</s>`"


def test_a_row_that_is_sharp_and_one_that_is_spread(trace) -> None:
    cross, said = trace.attention("decoder", FOLLOWS.layer, "cross"), focused(5, FOLLOWS)
    assert said.focus["token"] == 1 and right(HEADS, 5, sentence=CAT) == f"{np.log2(len(cross.key)):.0f} bits"
    assert cross.query.displays[1] == "·Le" and trace.prediction.displays[1] == "·chat"
    assert cross.key.displays[cross.weights[FOLLOWS.head, 1].argmax()] == "·cat"
    sharp, spread = cross.entropy[FOLLOWS.head, 1], cross.entropy[FOLLOWS.head, 10]
    assert "`is`" in said.notice and "`is`" in told_in_french(5).notice
    assert trace.prediction.displays[10] == "is" and trace.prediction.displays[8:11] == ("·ta", "p", "is")
    assert sharp < 0.1 and spread == pytest.approx(1, abs=0.1)
    for notice, small in ((said.notice, "less than 0.1 bits"), (told_in_french(5).notice, "moins de 0,1 bit")):
        assert small in notice and " 1 bit" in notice
    focused(4, FOLLOWS)
    assert right(HEADS, 4, sentence=CAT) == "it has to predict `·chat`"


def test_what_a_head_does_in_one_sentence_is_not_what_it_usually_does(checkpoint, trace) -> None:
    """Two heads have the same stripe; only one has it in other sentences."""
    roles = load_corpus_roles(checkpoint).roles
    for number in (2, 3):
        for told in (focused(number, BACK).explanation, told_in_french(number).explanation):
            assert "84 " in told and roles.n_sentences == 84
    for head, role in ((BACK, "previous"), (FORTH, "next"), (RESTS, "sink")):
        here = roles.head(*head)
        assert (here.role, here.shares[role]) == (role, 1.0)
    measured = roles.head(*BACK).measured
    assert measured.where["offset"] == -1 and round(10 * measured.measures["offset"].score) * 10 == ON_THE_TOKEN_BEFORE
    told = focused(2, BACK).explanation, told_in_french(2).explanation.replace("\u202f%", "%")
    assert all(f"{ON_THE_TOKEN_BEFORE}%" in one for one in told)
    assert "Head 4 of the same layer" in told[0] and (FORTH.layer, FORTH.head) == (BACK.layer, 4)
    assert "Layer 2, head 3" in focused(3, BACK).explanation and (RESTS.layer, RESTS.head) == (2, 3)
    usually = roles.head(*LIKE_BACK)
    assert usually.role == "none" and usually.shares["previous"] < 0.4
    view = trace.attention("encoder", LIKE_BACK.layer)
    assert head_roles(view)[LIKE_BACK.head].role == "previous"
    assert (np.diag(view.weights[LIKE_BACK.head], -1)[:4] > 0.7).all(), "one back"
    said = focused(6, LIKE_BACK).do
    assert all(f"`{name}`" in said for name in view.query.displays[1:5])


@pytest.mark.slow
def test_the_card_of_a_head_speaks_for_and_against(checkpoint, trace) -> None:
    asked = focused(6, LIKE_BACK)
    assert asked.options["heads_section"] == "card" and asked.covers == (CARD,)
    found = head_habits(checkpoint, read_sentences())
    habits = found[LIKE_BACK]
    assert habits.main.kind == "previous" and round(100 * habits.main.share) == ONE_BACK
    assert round(100 * habits.main.chance) == BY_CHANCE and habits.n_rows == ROWS
    steady = found[BACK].main
    assert steady.kind == "previous" and steady.share > 0.8, "more than 80%"
    rows = trace.attention("encoder", BACK.layer).weights[BACK.head, 1:5]
    assert (rows.argmax(axis=-1) == np.arange(4)).all(), "one back from these four as well"
    for told, rows in ((asked.explanation, "1,008"), (told_in_french(6).explanation, "1 008")):
        plain = told.replace("\u202f%", "%").replace("\u202f", " ")
        assert all(f"{share}%" in plain for share in (ONE_BACK, BY_CHANCE, 80)) and f"{rows} " in plain
    assert "Layer 1, head 2" in asked.explanation and (BACK.layer, BACK.head) == (1, 2)
    assert right(HEADS, 6, sentence=CAT) == "in about half"


@pytest.mark.slow
def test_the_card_of_an_aligning_head_has_its_counter_examples(checkpoint, trace) -> None:
    asked = focused(5, ALIGNS, WORTH)
    assert asked.options["heads_section"] == "card" and asked.covers == (CARD,)
    cross = trace.attention("decoder", ALIGNS.layer, "cross")
    assert cross.query.displays[1] == "·Le" and cross.key.displays[cross.weights[ALIGNS.head, 1].argmax()] == "·cat"
    habits = head_habits(checkpoint, read_sentences())[ALIGNS]
    share = {habit.kind: habit.share for habit in habits.habits}
    assert (habits.main.kind, habits.against.kind) == ("line", "before") and 0.5 < share["line"] < 0.65
    elsewhere = share["before"] + share["behind"]
    assert elsewhere == pytest.approx(1 / 3, abs=0.04), "in about a third"
    assert max(share["special"], share["punctuation"]) < min(share["before"], share["behind"]) - 0.03
    measured = load_corpus_roles(checkpoint).roles.head(*ALIGNS).measured
    assert measured.strongest == "aligned_next" and round(measured.measures["aligned_next"].score, 1) == ALIGNED
    assert f"(about {ALIGNED})" in asked.explanation
    assert f"(environ {ALIGNED})".replace(".", ",") in told_in_french(5, WORTH).explanation
    assert right(WORTH, 5, sentence=CAT) == "at a word before or after that line"


def test_a_clear_map_may_not_matter(checkpoint, trace) -> None:
    said = focused(1, BACK, WORTH)
    stripe = trace.attention("encoder", BACK.layer).weights[BACK.head]
    assert (np.diag(stripe, -1) > 0.8).all(), "a stripe just left of the diagonal"
    useless = head_effect(trace, *_place(BACK), head=BACK.head)
    assert float(right(WORTH, 1, sentence=CAT)) == pytest.approx(np.exp(useless.change), abs=0.05)
    useful = head_effect(trace, *_place(ALIGNS), head=ALIGNS.head)
    assert np.exp(useful.change) == pytest.approx(FACTOR, abs=0.06)
    french = told_in_french(1, WORTH).explanation
    assert "less than 5%" in said.explanation and "moins de 5\u202f%" in french
    assert f"about {FACTOR}" in said.explanation and f"environ {FACTOR}".replace(".", ",") in french
    assert "layer 1, head 7" in said.explanation and (ALIGNS.layer, ALIGNS.head) == (1, 7)
    focused(2, ALIGNS, WORTH)


def test_a_whole_layer_of_clear_maps_may_be_spared(checkpoint, trace) -> None:
    """All eight heads attend to the cat, and without them it is still there."""
    asked = step(WORTH, 2, sentence=CAT)
    weights = trace.attention("decoder", 1, "cross").weights[:, 1]
    assert trace.prediction.displays[1] == "·chat" and (weights.argmax(axis=-1) == 1).all()
    text = answer_with(checkpoint, *asked.changes["edit"])
    assert asked.changes["edit"] == ("drop:decoder.1.cross",) and text == "Le chat s'est assis sur le tapis."
    assert (
        text.replace("'", "’") in asked.explanation and text.replace("'", "’") in told_in_french(2, WORTH).explanation
    )
    assert right(WORTH, 2, sentence=CAT) == "it is still there"


def test_equal_weights_pass_on_another_word(checkpoint, trace) -> None:
    asked = step(WORTH, 4, sentence=CAT)
    (second,) = asked.changes["second"]
    other = transformer.trace(checkpoint, second)
    assert "chien" in other.text and (asked.focus["layer"], asked.focus["head"], asked.focus["token"]) == (1, 0, 1)
    rows = [one.attention("decoder", 1, "cross").weights[0, 1] for one in (trace, other)]
    assert np.abs(rows[0] - rows[1]).max() < 0.005 and trace.prediction.displays[1] == "·chat"
    values = [one.values("decoder.layers.1.cross_attention.value")[0, 1] for one in (trace, other)]
    assert np.linalg.norm(values[0] - values[1]) > 0.5 * np.linalg.norm(values[0])
    assert right(WORTH, 4, sentence=CAT) == "another value vector"


def _place(head: Head) -> tuple[str, int, str]:
    return head.stack, head.layer, head.kind


def test_attention_agrees_with_the_experiment_for_one_word_and_not_for_another(checkpoint, trace) -> None:
    view, said = trace.attention("decoder", ALIGNS.layer, "cross"), focused(3, ALIGNS, WORTH)
    seen = {}
    for row in (1, 6):
        depends = input_attributions(checkpoint, quantity_of(trace, row=row))
        rows = {
            one.name: np.abs(one.values)
            for one in compare_with_attention(trace, view, depends, head=7, query=row).measures
        }
        for name in ("head", "leave_one_out"):
            values = rows[name]
            assert values.max() > 3 * np.sort(values)[-2], "no close call"
            seen[trace.prediction.displays[row], name] = view.key.displays[values.argmax()]
    assert seen == {
        ("·chat", "head"): "·cat",
        ("·chat", "leave_one_out"): "·cat",
        ("·sur", "head"): "·the",
        ("·sur", "leave_one_out"): "·on",
    }
    assert len(view.key) == 8
    for notice in (said.notice, told_in_french(3, WORTH).notice):
        assert all(f"`{name}`" in notice for name in ("·chat", "·cat", "·sur", "·the", "·on"))
    assert said.focus["token"] == 1
    assert right(WORTH, 3, sentence=CAT) == "where this head reads, and no more"


def test_decoding(checkpoint) -> None:
    greedy = transformer.decode(checkpoint, LOVE)
    assert greedy.text == "Je t'aime."
    assert right(DECODING, 1, sentence=LOVE) == str(len(greedy.steps))
    first, second = greedy.steps[:2]
    assert first.candidates[0].probability > 0.85
    one, two, three = second.candidates[:3]
    assert (one.display, two.display) == ("·t", "·vous") and one.probability < 2 * two.probability
    assert one.probability + two.probability == pytest.approx(0.9, abs=0.05) and three.probability < 1 / 20
    assert two.probability > 10 * three.probability
    hesitates = step(DECODING, 2, sentence=LOVE).notice
    assert "nine tenths" in hesitates and "less than twice" in hesitates and "one twentieth" in hesitates
    forced = (first.chosen.id, two.id)
    assert right(DECODING, 3, sentence=LOVE) == transformer.decode(checkpoint, LOVE, forced=forced).text
    for strategy in (transformer.Sample(top_k=1, seed=5), transformer.Beam(width=1)):  # steps 5 and 7
        assert transformer.decode(checkpoint, LOVE, strategy).tokens.ids == greedy.tokens.ids


def test_the_tree_has_branches_for_tu_and_vous(checkpoint) -> None:
    tree = beam_tree(checkpoint, LOVE, transformer.Beam(width=4))
    second = {checkpoint.tokenizer.display(node.id) for node in tree.nodes if node.step == 2}
    assert {"·t", "·vous"} <= second
    assert right(DECODING, 7, sentence=LOVE) == "greedy decoding"


def test_greedy_choice_gets_lost_in_a_long_sentence(checkpoint) -> None:
    sentence = find_lesson(DECODING).steps[5].focus["sentence"]
    greedy = transformer.decode(checkpoint, sentence)
    beam = transformer.decode(checkpoint, sentence, transformer.Beam(width=4))
    assert greedy.text.count("a oublié") >= 5 and beam.text.count("a oublié") <= 1
    assert beam.log_probability > greedy.log_probability + 10
    assert len(beam.steps) < len(greedy.steps) / 2, "the likelier text leaves most of the English out"
    assert right(DECODING, 6, sentence=sentence).startswith("no, more likely")


def test_masks(checkpoint, trace) -> None:
    padded = transformer.trace(checkpoint, CAT, source_pads=4)
    assert padded.text == ANSWER and (padded.attention("encoder", 0).weights[:, :, 8:] == 0).all()
    assert right(MENDING, 2, sentence=CAT) == "nothing"
    hidden = answer_with(checkpoint, "mask:decoder.*.cross=keys 1")
    assert trace.source[1].display == "·cat"
    gone = right(MENDING, 3, sentence=CAT)
    assert gone in ANSWER and gone not in hidden and "tapis" in hidden and "assit" in hidden
    assert "chat" in answer_with(checkpoint, "mask:encoder.*.self=keys 1")
    alone = answer_with(checkpoint, "mask:encoder.*.self=itself")
    assert "tapis" not in alone
    assert step(MENDING, 4, sentence=CAT).page == "masks"
    assert right(MENDING, 4, sentence=CAT) == "the exchange between words"


def test_without_the_exchange_between_words_their_order_is_lost_as_well(checkpoint) -> None:
    assert checkpoint.config.positions == "rotary"
    edits = transformer.edits_from(checkpoint, ["mask:encoder.*.self=itself"])
    ends = []
    for sentence in (CAT, "The mat sat on the cat."):
        found = transformer.trace(checkpoint, sentence, target=ANSWER, edits=edits)
        said = found.activations["encoder.final_norm.output"].values
        ends.append(dict(zip(found.source.displays, said, strict=True)))
    for name in ("·cat", "·mat"):
        np.testing.assert_allclose(ends[0][name], ends[1][name], atol=1e-4)


def test_the_residual_matters_more_than_its_sublayer(checkpoint) -> None:
    assert answer_with(checkpoint, "drop:encoder.1.self") == ANSWER
    broken = answer_with(checkpoint, "residual:encoder.1.self")
    assert "chat" not in broken and "tapis" not in broken
    assert right(MENDING, 5, sentence=CAT) == "removing the residual connection"


def test_the_cases_have_the_bugs_that_the_lesson_names() -> None:
    checkpoint = transformer.load(ROOT / "checkpoints" / NATURAL)
    plain = transformer.trace(checkpoint, CAT)
    trace = transformer.trace_of(padded(plain.run, len(plain.source)))
    for number, fault in ((6, "scale"), (7, "positions")):
        case = step(MENDING, number, sentence=CAT).options["patient"]
        found = diagnosis_of(case, checkpoint.config)
        assert (found.fault, found.in_training) == (fault, False)
        assert CHECKS[fault](checked_model(trace, fault)).fires
    seen = experiment_with_bug(trace, "scale")
    stack, kind, layer, head = seen.most_changed_head
    largest, healthy = (
        one.attention(stack, layer, kind).weights[head].max(axis=-1) for one in (seen.changed, seen.original)
    )
    assert (largest > 0.5).mean() > 0.9, "nearly every row gives most of its attention to a single token"
    assert healthy.mean() < 0.4, "the original spreads it more widely"
    assert right(MENDING, 6, sentence=CAT) == "the division by √dₖ is missing"
    assert checkpoint.config.d_head == 32


def test_the_bare_embedding_says_the_token_that_was_read(natural, followed) -> None:
    lens = logit_lens(followed)
    assert lens.words[0] == lens.read and natural.config.tie_embeddings
    assert right(ADDS, 7, sentence=CAT) == "the token that was just read"


def test_what_a_layer_adds(natural, followed) -> None:
    first, french = step(ADDS, 1, sentence=CAT), find_lesson(ADDS, "fr").steps
    cat = first.focus["token"]
    assert followed.source[cat].display == "·cat" and natural.config.norm == "pre"
    assert str(natural.config.d_model) in first.answer
    lengths = [float(np.linalg.norm(followed.values(f"encoder.layers.{layer}.residual.in")[cat])) for layer in range(3)]
    lengths.append(float(np.linalg.norm(followed.values("encoder.layers.2.residual.out")[cat])))
    assert lengths == sorted(lengths) and 1.75 < lengths[-1] / lengths[0] < 2
    ends = np.linalg.norm(followed.values("encoder.layers.2.residual.out"), axis=1)
    assert followed.source[int(ends.argmax())].display == "</s>" and ends.max() > 3 * np.sort(ends)[-2]
    sinks = [followed.attention("encoder", layer).weights.sum(axis=1).argmax(axis=-1) for layer in range(3)]
    assert np.sum(np.concatenate(sinks) == ends.argmax()) >= 8, "many heads use it as a sink"
    third = step(ADDS, 3, sentence=CAT)
    assert right(ADDS, 3, sentence=CAT) == "nearly twice as long"
    assert f"about {lengths[0]:.0f} to about {lengths[-1]:.0f}." in third.explanation
    assert f"environ {lengths[0]:.0f} à environ {lengths[-1]:.0f}." in french[2].explanation
    hidden = followed.values("encoder.layers.0.feed_forward.hidden")[cat]
    active = int((hidden > 0).sum())
    assert len(hidden) == 1024 and active < 0.1 * len(hidden)
    assert f"{active} of 1,024" in step(ADDS, 4, sentence=CAT).explanation
    assert right(ADDS, 4, sentence=CAT) == "fewer than one in ten"


def test_without_a_feed_forward_layer_a_token_repeats_itself(natural) -> None:
    asked = step(ADDS, 6, sentence=CAT)
    assert answer_with(natural, *asked.changes["edit"]) == asked.answer
    assert find_lesson(ADDS, "fr").steps[5].answer.replace("’", "'") == asked.answer
    assert answer_with(natural, "drop:encoder.1.feed_forward") == answer_with(natural) == ANSWER


def test_other_models() -> None:
    steps = find_lesson(OTHERS).steps

    def read(number: int, *, second: bool = False) -> transformer.Trace:
        focus = steps[number - 1].focus
        sentence = steps[number - 1].changes["second"][0] if second else focus["sentence"]
        return transformer.trace(transformer.load(ROOT / "checkpoints" / focus["checkpoint"]), sentence)

    blank = read(1)
    assert blank.text == "He washed his hands." and blank.source.displays[3] == "<mask>"
    assert blank.attention("encoder", 3).allowed.all() and blank.source.displays[4] == "·hands"
    assert read(2, second=True).text == f"They washed {steps[1].answer} hands."
    for number in (False, True):
        weights = read(2, second=number).attention("encoder", 3).weights[4, 3]
        assert weights.argmax() == 1, "the pronoun is what it attends to"
    assert next_sentence(pair := read(3)).name == steps[2].answer == "NotNext" and steps[2].wrong[0][0] == "IsNext"
    for typed in ("The boys are playing || in the garden.", "Tom is in the kitchen. || The moon is far away."):
        assert f"`{typed}`" in steps[2].explanation or f"`{typed.split('|| ')[1]}`" in steps[2].do
        assert next_sentence(transformer.trace(pair.checkpoint, typed)).name == "IsNext"
    assert read(4).text.startswith("Un chien") and read(4, second=True).text.startswith("Ein Hund")
    assert len(read(5).source) == int(steps[4].answer) == 17
    sorted_ = train_toy("sort", positions="none", steps=200, every=200)
    copied = train_toy("copy", positions="none", steps=200, every=200)
    assert [list(run)[-1].score.accuracy > 0.5 for run in (sorted_, copied)] == [True, False]
    assert steps[5].answer == "sort the letters"


def test_tasks_for_any_sentence_name_none_of_its_words_and_hold_for_others(
    natural, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the reader's own sentence, the lines of the heads still do not all lead to one token."""
    for language in ("en", "fr"):
        steps = find_lesson(WAY, language).steps
        assert [number for number, one in enumerate(steps, 1) if one.any_sentence] == [1, 2, 3, 5, 6]
        for one in steps:
            feedback = [text for _option, text in one.wrong]
            texts = " ".join((one.do, one.notice, one.question, *one.choices, one.explanation, one.hint, *feedback))
            names_a_token = re.search(r"·\S", texts) is not None  # "· W₂" is a product
            assert one.any_sentence != names_a_token, (language, one.title)
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))  # other tests may have named tiny ones
    token, layer = find_lesson(WAY).steps[1].focus["token"], 0
    for typed, named in (
        ("My grandmother bakes apple pie every Sunday.", "·apple"),  # from "other" on, the first word in one piece
        ("I am here.", "·here"),
        ("Where do you live?", "·live"),
        ("Tom loves Mary.", "·Mary"),
    ):
        word, trace = nearest_word("en-fr", typed, token=token), transformer.trace(natural, typed)
        assert trace.source[word].display == named
        weights = trace.attention("encoder", layer, "self").weights[:, word]
        assert len(set(weights.argmax(axis=-1).tolist())) > 1, typed


def test_the_way_of_a_sentence(natural, followed) -> None:
    numbers = living_picture_numbers(followed)
    encoder, decoder = numbers.stacks
    steps = [step(WAY, number, sentence=CAT) for number in range(1, 7)]
    assert right(WAY, 1, sentence=CAT).startswith(f"{natural.config.d_model} numbers")
    french = find_lesson(WAY, "fr").steps
    # nothing is added to a row of E, because the position rotates queries and keys
    np.testing.assert_array_equal(
        followed.values("encoder.embedding.token"), followed.values("encoder.layers.0.residual.in")
    )
    assert natural.config.positions == "rotary" and encoder.place is None
    assert "adds nothing yet" in steps[0].explanation and "n’ajoute encore rien" in french[0].explanation
    # who looks at whom
    on = steps[1].focus["token"]
    assert followed.source[on].display == "·on" and followed.source[7].display == "</s>"
    weights = followed.attention("encoder", 0, "self").weights[:, on]
    favorites = weights.argmax(axis=-1)  # [head]
    assert right(WAY, 2, sentence=CAT) == "each head has its own queries and keys"
    assert weights.shape == (8, 8) and "all columns" in steps[1].wrong[0][1] and "eight heads" in steps[1].notice
    assert len(set(favorites.tolist())) > 1, "lines lead to different tokens"
    # what a layer changes
    assert encoder.adds and decoder.adds and right(WAY, 3, sentence=CAT).startswith("it adds")
    assert f"{natural.config.d_ff:,} units" in steps[2].notice
    # where the French word comes from
    last = natural.config.n_decoder_layers - 1
    assert {one.focus["layer"] for one in find_lesson(WAY).steps[3:]} == {last}
    weights = followed.attention("decoder", last, "cross").weights[:, steps[3].focus["token"]]
    (key,) = set(weights.argmax(axis=-1))
    assert len(weights) == 8 and "of the eight heads" in steps[3].explanation
    assert f"attends almost only to `{followed.source[key].display}`" in steps[3].question
    assert (
        followed.target[steps[3].focus["token"]].display in right(WAY, 4, sentence=CAT) and "reads" in steps[3].notice
    )
    assert weights.max(axis=-1).min() > 0.98 and "more than 0.98" in steps[3].explanation
    row = next(row for row in numbers.written if row.position == 1)
    chance = f"{row.probabilities[row.chosen]:.2f}"
    for told, number in ((steps[3].explanation, chance), (french[3].explanation, chance.replace(".", ","))):
        assert f"`{row.names[row.chosen]}`" in told and told.endswith(f" {number}.")
    assert "plus de 0,98" in french[3].explanation
    # softmax, and word after word
    assert weights[steps[4].focus["head"]].sum() == pytest.approx(1, abs=1e-6)
    row_name = f"*÷ √{natural.config.d_head}*"  # of the scores in the unfolded picture
    assert row_name in steps[4].do and row_name in french[4].do
    assert right(WAY, 5, sentence=CAT) == "1" and steps[4].focus["head"] == 0
    assert f"{np.e:.1f} times" in steps[4].explanation and "2,7 fois" in french[4].explanation
    assert (
        f"{numbers.vocabulary:,}" in steps[5].explanation
        and f"{numbers.vocabulary:,}".replace(",", "\u202f") in french[5].explanation
    )
    # how you would test it
    proof = step(WAY, 7, sentence=CAT)
    assert proof.changes["mask"] == ("word 1",) and followed.source[1].display == "·cat"
    hidden = answer_with(natural, "mask:decoder.*.cross=keys 1")
    assert followed.text == ANSWER and hidden == ANSWER.replace("Le chat", "Le tapis")
    assert "*chat* has become *tapis*" in proof.explanation and "*chat* est devenu *tapis*" in french[6].explanation
