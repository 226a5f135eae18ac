"""Each page of the laboratory visibly answers its question on the opening sentence of a checkpoint."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from tests.opening_consequences import Consequences
from tests.shipped import SHIPPED
from transformer.files.opening_file import read_opening
from transformer.interventions.experiment import experiment
from transformer.predictions.answer_probabilities import prediction_rows, read_answer
from transformer.predictions.living_picture_numbers import living_picture_numbers
from transformer.runs.edit_specs import edits_from
from transformer.runs.mask_choices import MaskChoices, words_to_block

pytestmark = pytest.mark.slow
OPENED = (
    "en-fr",
    "en-fr-sharp",
    "gpt-en",
    "bert-en",
    "bert-en-pairs",
    "sentiment",
    "t5-small-tasks",
)
# With these bugs, the two still predict the same word and class.
INVISIBLE_BUGS = {"bert-en": {"scale"}, "bert-en-pairs": {"scale", "padding"}}


@pytest.fixture(scope="module", params=OPENED)
def opened(request: pytest.FixtureRequest) -> Consequences:
    (path,) = [path for path in SHIPPED if path.name == request.param]
    return Consequences(transformer.load(path), read_opening(path).first)


def test_surgery_changes_the_output_without_the_opened_head(opened: Consequences) -> None:
    assert opened.example.without, "tests/test_openings.py checks that this is the output without the head"
    assert opened.example.without != opened.answer.text.removeprefix(opened.example.sentence).strip()


def test_masks_change_the_output_when_the_opened_cell_is_blocked(opened: Consequences) -> None:
    assert opened.with_cell_blocked().text != opened.answer.text


def test_compare_opens_on_a_swap_that_changes_the_prediction(opened: Consequences) -> None:
    found = opened.patched()
    assert found.turn.corrupt < 0 < found.turn.clean
    assert found.share(found.strongest) > 0.4


def test_compare_opens_on_two_outputs_and_two_maps(opened: Consequences) -> None:
    comparison = opened.comparison()
    assert comparison.answers[0].text != comparison.answers[1].text
    if comparison.followed:  # its point is that the head looks at the swapped word in both
        assert comparison.followed.weight > 0.5
    else:
        assert np.abs(comparison.differences[0].values).max() > 0.4
        assert comparison.largest_shift is not None


def test_every_bug_of_the_forward_pass_changes_the_output(opened: Consequences) -> None:
    outputs = {fault: opened.with_bug(fault) for fault in opened.bugs}
    assert {fault for fault, (original, other) in outputs.items() if original == other} == INVISIBLE_BUGS.get(
        opened.checkpoint.name, set()
    )


def test_lens_follows_a_word_that_was_not_on_top_from_the_start(opened: Consequences) -> None:
    assert opened.lens().top_from > 0


def test_heads_of_the_opened_attention_differ_in_their_roles(opened: Consequences) -> None:
    roles = opened.roles()
    assert len(roles) > 1 and max(roles.values()) < 0.9 * roles.total(), roles


def test_decoding_has_a_step_with_another_candidate(opened: Consequences) -> None:
    assert min(part.probability for part in opened.answer.parts) < 0.75


TYPED = "My grandmother bakes apple pie every Sunday."


def shipped(name: str) -> transformer.Checkpoint:
    (path,) = [path for path in SHIPPED if path.name == name]
    return transformer.load(path)


def test_a_finished_text_shows_what_the_model_expected_after_each_word() -> None:
    """The model adds nothing to it, so that there is no output to look at."""
    trace = transformer.trace(shipped("gpt-en"), TYPED)
    question, answer = prediction_rows(trace), read_answer(trace)
    assert question.everywhere and not question.predicts_nothing
    assert question.rows == tuple(range(len(trace.target))) and trace.prediction[question.rows[-1]].role == "end"
    assert answer.text == "" and len(answer.parts) == 1
    picture = living_picture_numbers(trace)
    assert not picture.writes and not picture.asked and len(picture.written) == len(question.rows)
    every = next(row for row in picture.written if trace.target[row.position].display == "·every")
    assert every.names[0] == "·day" and every.names[every.chosen] == "·Sunday"


def test_a_text_that_goes_on_is_predicted_from_its_end_only() -> None:
    trace = transformer.trace(shipped("gpt-en"), "She is drinking a cup of")
    assert not prediction_rows(trace).everywhere


@pytest.mark.parametrize("name", ["gpt-en", "sentiment"])
def test_blocking_a_word_of_a_typed_sentence_moves_what_is_predicted(name: str) -> None:
    trace = transformer.trace(shipped(name), TYPED)
    stack = trace.stacks[0]
    view = trace.attention(stack, 0, "self")
    found = [
        experiment(trace, edits_from(trace.checkpoint, MaskChoices("word", word=word).specs(view)))
        for word in words_to_block(view)
    ]
    most = max(found, key=lambda one: one.mean_kl)
    if name == "gpt-en":
        assert most.predicts_otherwise and most.answer_after.text == "" and most.expectations()[0].before != ""
    else:
        assert abs(most.answer_after.probability - most.answer_before.probability) > 0.1
