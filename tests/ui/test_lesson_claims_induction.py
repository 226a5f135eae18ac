"""The statements of the lesson “Looking it up” about gpt-en hold, recomputed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import transformer
from tests.conftest import ROOT
from transformer.files.model_card import began_as
from transformer.heads.role_files import load_corpus_roles
from transformer.interventions.head_importance import head_effect
from transformer.runs.head_places import Head
from ui.shell.guidance.lessons import Step, find_lesson
from ui.words.texts import page_text

LESSON = "10-looking-it-up"
TARGET = "train Monday."
FORETOLD = 9  # the row of the second ·window, after which ·train should follow
SEARCHING, LOOKING_BACK = (2, 7), ((1, 0), (1, 4))
ENGLISH = 5  # the step about a sentence of English words


@pytest.fixture(scope="module")
def checkpoint() -> transformer.Checkpoint:
    return transformer.load(ROOT / "checkpoints" / "gpt-en")


@pytest.fixture(scope="module")
def sentence() -> str:
    steps = find_lesson(LESSON).steps
    (only,) = {step.focus["sentence"] for number, step in enumerate(steps, start=1) if number != ENGLISH}
    assert {step.focus["checkpoint"] for step in steps} == {"gpt-en"}
    return only


@pytest.fixture(scope="module")
def trace(checkpoint, sentence) -> transformer.Trace:
    targets = [step.focus.get("target") for step in find_lesson(LESSON).steps]
    assert targets == [None, TARGET, TARGET, "train", None, TARGET, TARGET]
    found = transformer.trace(checkpoint, sentence, target=TARGET)
    assert found.target.displays == ("<s>", *2 * ["·bird", "·sugar", "·window", "·train", "·Monday", "."])
    return found


def step(number: int) -> Step:
    return find_lesson(LESSON).steps[number - 1]


def right(number: int) -> str:
    return step(number).answer


def candidates(trace: transformer.Trace, row: int = FORETOLD) -> dict[str, float]:
    """Return the probability of every token after that of ``row``, the largest first."""
    logits = trace.values("decoder.logits")[row].astype(np.float64)
    probabilities = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    order = np.argsort(-probabilities)
    return {trace.checkpoint.tokenizer.display(int(id)): float(probabilities[id]) for id in order}


def without(checkpoint: transformer.Checkpoint, sentence: str, *heads: tuple[int, int]) -> dict[str, float]:
    edits = [transformer.ablate_head("decoder", layer=layer, kind="self", head=head) for layer, head in heads]
    return candidates(transformer.trace(checkpoint, sentence, target=TARGET, edits=edits))


def test_what_comes_next_stood_there_before(trace) -> None:
    (first, probability), *_ = candidates(trace).items()
    assert first == "·train" and f"gets {probability:.2f}, " in step(1).explanation
    assert right(1) == "`·train`"
    assert "·door" in candidates(trace), "a choice that could be"


def test_where_the_head_looks_and_which_head_told_it(trace) -> None:
    searching = trace.attention("decoder", layer=SEARCHING[0], kind="self").weights[SEARCHING[1]]
    displays = trace.target.displays
    assert displays[searching[FORETOLD].argmax()] == "·train" and searching[FORETOLD].max() > 0.9
    assert searching[FORETOLD - 1].argmax() == 3 and displays[3] == "·window"
    assert right(2) == "`·train`" and f"layer {SEARCHING[0]}, head {SEARCHING[1]}" in step(2).do
    assert (step(2).focus["layer"], step(2).focus["head"], step(2).focus["token"]) == (*SEARCHING, FORETOLD)
    back = trace.attention("decoder", layer=1, kind="self").weights[LOOKING_BACK[0][1]][1 : FORETOLD + 1]
    assert np.mean(back.argmax(axis=1) == np.arange(FORETOLD)) >= 0.8, "nearly every row"
    assert right(3) == "the one before it"


def test_the_head_that_searches_helps_its_answer_by_the_number_beside_its_map(trace) -> None:
    """The given output ends there; its improbable end token is not compared."""
    effect = head_effect(trace, "decoder", SEARCHING[0], "self", head=SEARCHING[1])
    assert effect.displays == ("·train", "·Monday", ".") and 0.5 < effect.factor < 1


def test_without_the_heads_that_look_back_nothing_is_left(checkpoint, sentence) -> None:
    assert step(4).changes["edit"] == tuple(f"zero:decoder.{layer}.self.{head}" for layer, head in LOOKING_BACK)
    assert without(checkpoint, sentence, *LOOKING_BACK)["·train"] < 0.02
    one = without(checkpoint, sentence, LOOKING_BACK[0])["·train"]
    assert f"keeps {one:.2f}." in step(4).notice and right(4) == "next to nothing is left"


def test_without_a_head_that_looks_back_the_training_decides(checkpoint) -> None:
    english = step(ENGLISH).focus["sentence"]
    whole = transformer.trace(checkpoint, english)
    likely = candidates(whole, row=13)
    assert whole.target.displays[13] == "·cold" and whole.text == f"{english} milk."
    assert f"`·milk` has {likely['·milk']:.2f}, and `·coffee` {likely['·coffee']:.2f}." in step(ENGLISH).notice
    silent = transformer.edits_from(checkpoint, step(ENGLISH).changes["edit"])
    assert transformer.trace(checkpoint, english, edits=silent).text == f"{english} coffee."
    assert right(ENGLISH) == "with `·coffee`"


def test_the_count_of_induction_heads(checkpoint) -> None:
    test = load_corpus_roles(checkpoint).roles.induction
    found = [(head.layer, head.head) for head in test.heads]
    assert right(6) == str(len(found)) and {layer for layer, _ in found} == {2, 3} and SEARCHING in found
    assert all(test.previous[Head("decoder", "self", *place)] > 0.9 for place in LOOKING_BACK)
    config = checkpoint.config
    assert "of the 32 heads" in step(6).question and config.n_decoder_layers * config.n_heads == 32
    assert "each of 16 sequences" in step(6).do and len(test.lengths) == 16


def test_the_heads_appear_together_when_the_loss_falls(checkpoint) -> None:
    history = pd.read_csv(checkpoint.path / "history.csv").dropna(subset="repeated_loss")
    at = dict(zip(history["step"], history["repeated_loss"], strict=True))
    assert len(at) == 5 and "at five steps" in step(7).do
    assert right(7) == "nearly all together, within 200 steps"
    assert abs(at[400] - 8) < 0.3 and at[600] < 2
    assert checkpoint.config.vocabulary_size == 4000
    (told, *_) = page_text("training").look_for_of({"decoder-only"})
    assert "like that of gpt-en" in told and "between steps 400 and 600" in told
    assert began_as(checkpoint.card) == "gpt-en-text"
