"""The view model of Bugs; every bug is visible on the sentence that each checkpoint opens with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import transformer
from tests.shipped import SHIPPED
from transformer.faults.catalogue import FAULTS, HEALTHY, Diagnosis, diagnoses
from transformer.faults.forward_faults import LIVE_FAULTS
from transformer.files.opening_file import read_opening
from transformer.runs.head_places import Head, all_heads
from transformer.runs.run import Run
from views.bugs.bugs_view_model import (
    WORDS,
    CheckpointCase,
    Symptom,
    TrainingCase,
    bugs_view_model,
    experiment_with_bug,
    fold_padding,
    padded,
)

SENTENCE = "The old man told us a story."
VISIBLE = 0.1  # bits between two maps, averaged over the rows: cells that change from dark to bright


@pytest.fixture
def trace(tiny_checkpoint) -> transformer.Trace:
    return transformer.trace(tiny_checkpoint("translator"), SENTENCE)


@pytest.mark.parametrize("fault", LIVE_FAULTS)
def test_it_shows_the_head_that_differs_most(trace, fault: str) -> None:
    found = experiment_with_bug(trace, fault)
    case = bugs_view_model(Diagnosis(fault, False), found)
    for head in all_heads(trace.checkpoint.config):
        other = bugs_view_model(Diagnosis(fault, False), found, head)
        assert other.map_distance <= case.map_distance
    assert case.outputs == (found.answer_before.text, found.answer_after.text)
    before, after = (view.weights[case.head] for view in case.views)
    assert case.share_moved == pytest.approx(np.abs(before - after).sum(-1).mean() / 2)


def test_without_a_bug_nothing_differs(trace) -> None:
    case = bugs_view_model(
        Diagnosis(HEALTHY, False), experiment_with_bug(trace, HEALTHY), Head("encoder", "self", 0, 0)
    )
    assert case.share_moved == 0 and case.shift is None and case.outputs[0] == case.outputs[1]
    assert (case.signs[0].entropy == case.signs[1].entropy).all()


@pytest.mark.parametrize("fault", ["causal", "target"])
def test_a_bug_in_training_shows_in_what_the_model_writes(fault: str) -> None:
    case = bugs_view_model(Diagnosis(fault, True))
    assert case.outputs[0] == WORDS[0] != case.outputs[1]
    with_bug, without = case.findings()
    assert with_bug[fault].fires and not without[fault].fires
    assert len(case.steps) == len(case.curves("reported")[1]) and case.last.writes < 0.5


@pytest.mark.parametrize(
    ("written", "kind", "word"),
    [
        ("", "silent", ""),
        ("... .", "dots", ""),
        ("de de de de de de. de", "repeats", "de"),
        ("Le chat dort sur le tapis.", "other", ""),
        ("on, on, on, on", "other", ""),
    ],
)
def test_the_symptom_of_a_text(monkeypatch, trace, written: str, kind: str, word: str) -> None:
    case = bugs_view_model(Diagnosis("norm", False), experiment_with_bug(trace, "norm"))
    monkeypatch.setattr(CheckpointCase, "outputs", ("Le vieil homme dort.", written))
    assert case.symptom == Symptom(kind, word)


def test_the_symptom_of_a_case_without_a_bug_and_of_a_class(tiny_checkpoint, trace, monkeypatch) -> None:
    for fault in (HEALTHY, "scale"):
        case = bugs_view_model(Diagnosis(fault, False), experiment_with_bug(trace, fault))
        assert (case.symptom.kind == "same") == (case.outputs[0] == case.outputs[1])
    read = transformer.trace(tiny_checkpoint("sentiment"), SENTENCE)
    case = bugs_view_model(Diagnosis("norm", False), experiment_with_bug(read, "norm"))
    monkeypatch.setattr(CheckpointCase, "outputs", ("positive", "negative"))
    assert case.symptom == Symptom("class", "negative", "positive")
    masked = transformer.trace(tiny_checkpoint("bert"), SENTENCE)
    case = bugs_view_model(Diagnosis("norm", False), experiment_with_bug(masked, "norm"))
    assert case.symptom == Symptom("unasked")
    assert bugs_view_model(Diagnosis(HEALTHY, True)).symptom == Symptom("copies", WORDS[0])
    assert bugs_view_model(Diagnosis("target", True)).symptom.kind == "miscopies"


def test_padding_is_as_long_as_the_model_can_read(tiny_checkpoint) -> None:
    run = Run(tiny_checkpoint("translator"), SENTENCE)
    longest = run.checkpoint.config.max_length
    assert padded(run, 9).source_pads == 4 and padded(run, longest).source_pads == 0
    assert padded(run, longest - 1).source_pads == 1 and padded(run, 0) is run


@pytest.mark.parametrize("kind", ["self", "cross"])
def test_all_padding_is_one_column_with_its_whole_weight(tiny_checkpoint, kind: str) -> None:
    run = padded(Run(tiny_checkpoint("translator"), SENTENCE), 9)
    found = experiment_with_bug(transformer.trace_of(run), "padding")
    stack = "encoder" if kind == "self" else "decoder"
    view = found.changed.attention(stack, 1, kind)
    folded = fold_padding(view)
    n_words = len(view.key) - 4
    assert folded.key.displays == (*view.key.displays[:n_words], "<pad> ×4")
    rows = len(folded.query)
    assert rows == (n_words + 1 if kind == "self" else len(view.query))
    np.testing.assert_array_equal(folded.weights[..., :n_words], view.weights[:, :rows, :n_words])
    np.testing.assert_allclose(folded.weights.sum(axis=-1), 1, rtol=1e-5)
    assert (
        folded.allowed[:, -1].all() and not fold_padding(found.original.attention(stack, 1, kind)).allowed[:, -1].any()
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_every_bug_is_visible_on_the_opening_sentence(path: Path) -> None:
    checkpoint, opening = transformer.load(path), read_opening(path)
    run = Run(checkpoint, opening.first.sentence)
    plain = transformer.trace_of(run)
    trace = transformer.trace_of(padded(run, len(plain.source) if plain.source is not None else 0))
    shown = set()
    for diagnosis in diagnoses(checkpoint.config):
        found = None if diagnosis.in_training else experiment_with_bug(trace, diagnosis.fault)
        case = bugs_view_model(diagnosis, found)
        differs = case.outputs[0] != case.outputs[1]
        if found is not None:
            differs = differs or case.map_distance > VISIBLE
        assert differs == (diagnosis.fault != HEALTHY), diagnosis
        assert case.shift is None or _marked(case) == case.shift[:3]
        if case.shift is not None and case.looks_everywhere:
            row = case.shift.cells[1][0]
            assert case.views[1].weights[case.head, row].max() < 1.5 / case.views[1].allowed[row].sum()
        assert isinstance(case, TrainingCase) or _has_sign(case), diagnosis
        shown.add(diagnosis.fault)
    assert {"causal", "target", HEALTHY} <= shown <= {*FAULTS, HEALTHY}


def _marked(case: CheckpointCase | TrainingCase) -> tuple[str, str, str]:
    """Return the tokens of the cells that are marked in the maps; each is the largest of its row."""
    (row, before), (other_row, after) = case.shift.cells
    first, second = case.views
    assert first.weights[case.head, row].argmax() == before and second.weights[case.head, other_row].argmax() == after
    on_rows = first.query.labels[row], second.query.labels[other_row]
    if isinstance(case, CheckpointCase) and case.location.kind == "cross":
        on_rows = tuple(run.prediction.labels[row] for run in (case.experiment.original, case.experiment.changed))
    assert on_rows[0] == on_rows[1]
    return on_rows[0], first.key.labels[before], second.key.labels[after]


def _has_sign(case: CheckpointCase) -> bool:
    """Return whether the words below the name of a bug are true of a case."""
    before, after = case.signs
    if case.fault == "scale":  # "too sharp"
        return float(np.mean(after.entropy)) < 0.7 * float(np.mean(before.entropy))
    if case.fault == "padding":  # "looks at padding"
        return case.views[1].weights[..., -1].mean() > case.views[0].weights[..., -1].mean() == 0
    if case.fault == "norm":  # "vectors of the wrong size"
        return not 0.5 < after.size[-1] / before.size[-1] < 2
    return True
