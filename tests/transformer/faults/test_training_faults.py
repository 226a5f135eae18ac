"""The two training bugs: their losses, the committed models, and the checks that find them."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from transformer.errors import CheckpointError
from transformer.faults import training_faults
from transformer.faults.catalogue import TRAINING
from transformer.faults.checked_models import checked_model_in_training, self_attention_in_training
from transformer.faults.fault_checks import CHECKS
from transformer.faults.training_faults import HEALTHY, NAMES, STEPS, train_and_save, trained_toy
from transformer.text.tokenizer import PAD_ID
from transformer.toy.learner import TRAINING_FAULTS, ToyLearner, toy_config
from transformer.toy.tasks import TASKS, draw_batch
from transformer.toy.toy_training import held_out_words, train_toy


def learner(fault: str = "") -> ToyLearner:
    return ToyLearner(TASKS["copy"], toy_config(), torch.Generator().manual_seed(0), fault=fault)


def words():
    return draw_batch(TASKS["copy"], 8, torch.Generator().manual_seed(5))


def test_the_shifted_target_is_what_was_just_read():
    batch, faulty = words(), learner("shifted_target")
    logits = faulty.model(batch.source, batch.read)
    wanted = F.cross_entropy(logits.flatten(0, 1), batch.read.flatten(), ignore_index=PAD_ID)
    torch.testing.assert_close(faulty.loss(batch), wanted)
    assert learner().loss(batch).item() != pytest.approx(wanted.item(), rel=1e-3)


def test_without_causal_mask_the_loss_knows_the_next_letter():
    """The gradient of a row's loss reaches the next letter only with the bug."""
    for fault, reaches in (("no_causal_mask", True), ("", False)):
        batch, model = words(), learner(fault)
        later = batch.read.clone()
        later[:, 4] = 3 + (later[:, 4] - 3 + 1) % 26  # another letter at position 4 of every word that has one
        with torch.no_grad(), model._reading():
            one, other = (model.model(batch.source, read)[:, :4] for read in (batch.read, later))
        assert torch.allclose(one, other, atol=1e-6) != reaches


def test_a_fault_must_be_known():
    with pytest.raises(ValueError, match="fault is 'flu'; choose none, or one of no_causal_mask"):
        learner("flu")


def test_a_state_reports_the_loss_of_its_training():
    for fault in ("", *TRAINING_FAULTS):
        *_, state = train_toy("copy", steps=2, every=1, fault=fault)
        assert (state.reported == state.score.loss) == (not fault)


def test_training_goes_on_as_before_without_a_fault():
    plain, named = (list(train_toy("copy", steps=3, every=1, **more)) for more in ({}, {"fault": ""}))
    assert [state.score.loss for state in plain] == [state.score.loss for state in named]


# ---- the trainings that are kept -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRAINING_FAULTS)
def test_the_loss_says_all_is_well_and_the_writing_says_it_is_not(name):
    moments = trained_toy(name).moments
    assert moments[0].step == 0 and moments[-1].step == STEPS
    assert moments[0].reported > 2
    assert moments[-1].reported < 0.02
    assert moments[-1].loss > 1
    assert moments[-1].writes < 0.05
    healthy = trained_toy(HEALTHY).moments[-1]
    assert healthy.reported < 0.02 and healthy.writes > 0.95


@pytest.mark.parametrize("name", NAMES)
def test_the_kept_model_writes_what_its_course_says(name):
    toy = trained_toy(name)
    assert toy.learner.generate("gradient") == toy.moments[-1].written
    assert toy.learner.score(held_out_words(TASKS[training_faults.TASK])).accuracy == pytest.approx(
        toy.moments[-1].writes,
        abs=0.02,  # the stored weights were rounded to half precision
    )


def test_the_shifted_target_writes_one_letter_for_ever():
    learner = trained_toy("shifted_target").learner
    for word in ("gradient", "abcd", "zebra"):
        answer = learner.answer(word)
        assert len(set(answer.text)) == 1
        assert not answer.finished


@pytest.mark.parametrize("fault", ["", *TRAINING])
def test_a_check_fires_on_its_own_training_alone(fault):
    checked = checked_model_in_training(trained_toy(TRAINING.get(fault, HEALTHY)).learner, "gradient")
    findings = [check(checked) for check in CHECKS.values()]
    assert all(findings)
    assert [found.check for found in findings if found.fires] == ([fault] if fault else [])


def test_the_map_in_training_has_no_mask_where_there_was_none():
    for name in NAMES:
        view, predicted = self_attention_in_training(trained_toy(name).learner, "gradient")
        assert view.allowed.all() == (name == "no_causal_mask")
        assert predicted == (*"gradient", "</s>")
        assert view.query.displays == ("<s>", *"gradient")


def test_the_command_makes_what_is_kept(tmp_path, monkeypatch):
    """The first moments of a new training equal the stored ones: nothing was edited by hand."""
    train_and_save("shifted_target", tmp_path, steps=2)
    monkeypatch.setattr(training_faults, "FOLDER", tmp_path)
    trained_toy.cache_clear()
    try:
        new = trained_toy("shifted_target").moments
        assert [moment.step for moment in new] == [0, 2]
    finally:
        trained_toy.cache_clear()
    monkeypatch.undo()
    assert new[0].reported == pytest.approx(trained_toy("shifted_target").moments[0].reported, rel=1e-4)
    assert new[0].written == trained_toy("shifted_target").moments[0].written


def test_missing_files_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(training_faults, "FOLDER", tmp_path)
    trained_toy.cache_clear()
    try:
        with pytest.raises(CheckpointError, match="lacks the training healthy; make it with python -m"):
            trained_toy(HEALTHY)
    finally:
        trained_toy.cache_clear()
    with pytest.raises(ValueError, match="no training 'flu'"):
        trained_toy("flu")
