"""Each page of the laboratory visibly answers its question on the opening sentence of a checkpoint."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

import transformer
from tests.shipped import shipped
from transformer.faults.catalogue import inapplicable
from transformer.faults.forward_faults import LIVE_FAULTS, experiment_with_bug, padded
from transformer.files.opening_file import Example, read_opening
from transformer.heads.head_roles import sentence_roles
from transformer.interventions.activation_patching import contrast, patch_grid, recovered_shares
from transformer.interventions.compared_runs import compared_row, followed_word
from transformer.interventions.experiment import experiment
from transformer.interventions.patch_map import PatchMap
from transformer.predictions.answer_probabilities import Answer, prediction_rows, read_answer
from transformer.predictions.comparison import compared_attention, difference_map, largest_shift
from transformer.predictions.lens import logit_lens
from transformer.predictions.living_picture_numbers import living_picture_numbers
from transformer.predictions.target import lens_stack
from transformer.runs.edit_specs import edits_from
from transformer.runs.head_places import Head
from transformer.runs.mask_choices import MaskChoices, words_to_block
from transformer.runs.tracing import trace_of
from ui.sections.word_swaps import offered_pairs
from views.opening_tokens import predicting_token

pytestmark = pytest.mark.slow
OF_THE_DAY = pytest.mark.sample("opened", of=3, together=True)
OPENED = ("en-fr", "en-fr-sharp", "gpt-en", "bert-en", "bert-en-pairs", "sentiment", "t5-small-tasks")
# With these bugs, the models still predict the same.
INVISIBLE_BUGS = {"en-fr": {"padding"}, "bert-en": {"scale"}, "bert-en-pairs": {"scale", "padding"}}


@dataclass(frozen=True)
class Opened:
    """What the pages open with, for one checkpoint.

    Attributes:
        head: The head in focus, and ``token`` its row.
        answer: The output, token by token.
        swaps: The sentences with one word swapped that Compare offers.
    """

    example: Example
    trace: transformer.Trace
    head: Head
    token: int
    answer: Answer
    swaps: tuple[str, ...]


@pytest.fixture(scope="module", params=OPENED)
def opened(request: pytest.FixtureRequest) -> Opened:
    checkpoint = shipped(request.param)
    example = read_opening(checkpoint.path).first
    trace, place = transformer.trace(checkpoint, example.sentence), example.place
    answer = read_answer(trace)
    swaps = [b for a, b in offered_pairs(checkpoint, example.sentence, answer.text) if a == example.sentence]
    head = Head(place["stack"], place["kind"], place["layer"], place["head"])
    return Opened(example, trace, head, int(place["token"]), answer, tuple(swaps))


@OF_THE_DAY
def test_surgery_changes_the_output_without_the_opened_head(opened: Opened) -> None:
    assert opened.example.without, "tests/test_openings.py checks that this is the output without the head"
    assert opened.example.without != opened.answer.text.removeprefix(opened.example.sentence).strip()


@OF_THE_DAY
def test_masks_change_the_output_when_the_opened_cell_is_blocked(opened: Opened) -> None:
    """In all layers, as a click there does; the cell is the key that the row attends to most."""
    stack, kind, layer, head = opened.head
    key = int(opened.trace.attention(stack, layer, kind).weights[head, opened.token].argmax())
    blocked = edits_from(opened.trace.checkpoint, [f"mask:{stack}.*.{kind}=block {opened.token}-{key}"])
    assert experiment(opened.trace, blocked).answer_after.text != opened.answer.text


@OF_THE_DAY
def test_compare_opens_on_a_swap_that_changes_the_prediction(opened: Opened) -> None:
    """What patching one vector undoes, for the offered swap with the clearest effect."""
    pairs = [contrast(opened.trace, other) for other in opened.swaps]
    both = max(pairs, key=lambda one: min(one.most_changed_turn.clean, -one.most_changed_turn.corrupt))
    turn = both.most_changed_turn
    grid = patch_grid(both, turn)
    places = [place for row in grid for place in row if place is not None]
    found = PatchMap(both, turn, grid, recovered_shares(both, turn, [places])[0])
    assert turn.corrupt < 0 < turn.clean and found.share(found.strongest) > 0.4


@OF_THE_DAY
def test_compare_opens_on_two_outputs_and_two_maps(opened: Opened) -> None:
    comparison = experiment(opened.trace, sentence=opened.swaps[0])
    assert comparison.answer_before.text != comparison.answer_after.text
    kept = contrast(opened.trace, opened.swaps[0])
    if followed := followed_word(comparison, kept.most_changed_turn):  # the head looks at the swapped word in both
        row = compared_row(comparison, *followed)
        assert row is not None and row.weights.max(axis=1).min() > 0.5
    else:
        head = comparison.most_changed_head
        runs = (comparison.original, comparison.changed)
        views = [compared_attention(run, head.stack, head.layer, head.kind) for run in runs]
        assert np.abs(difference_map(*views, head=head.head).values).max() > 0.4
        assert largest_shift(*views, head=head.head) is not None


@OF_THE_DAY
def test_every_bug_of_the_forward_pass_changes_the_output(opened: Opened) -> None:
    checkpoint, source = opened.trace.checkpoint, opened.trace.source
    trace = trace_of(padded(opened.trace.run, 0 if source is None else len(source)))
    bugs = {fault for fault in LIVE_FAULTS if fault not in inapplicable(checkpoint.config)}
    seen = {fault: experiment_with_bug(trace, fault) for fault in bugs}
    hidden = {fault for fault, one in seen.items() if one.answer_before.text == one.answer_after.text}
    assert hidden == INVISIBLE_BUGS.get(checkpoint.name, set())


@OF_THE_DAY
def test_lens_follows_a_word_that_was_not_on_top_from_the_start(opened: Opened) -> None:
    checkpoint = opened.trace.checkpoint
    token = opened.token if opened.head.stack == lens_stack(checkpoint) else 0
    token = token or predicting_token(opened.trace)
    assert logit_lens(opened.trace).column(token + (bool(checkpoint.config.n_classes) and token > 0)).top_from > 0


@OF_THE_DAY
def test_heads_of_the_opened_attention_differ_in_their_roles(opened: Opened) -> None:
    views = [view for view in opened.trace.attention_views() if (view.stack, view.kind) == opened.head[:2]]
    roles = Counter(role.role for view in views for role in sentence_roles(view))
    assert len(roles) > 1 and max(roles.values()) < 0.9 * roles.total(), roles


@OF_THE_DAY
def test_decoding_has_a_step_with_another_candidate(opened: Opened) -> None:
    assert min(part.probability for part in opened.answer.parts) < 0.75


TYPED = "My grandmother bakes apple pie every Sunday."


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
