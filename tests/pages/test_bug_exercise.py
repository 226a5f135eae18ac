"""The exercise “Which bug is this?”: two models, a guess, and the numbers of the check."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import transformer
from charts.toolkit.style import three_digits
from tests.conftest import ROOT
from tests.nights import by_day
from tests.pages.conftest import codes, is_fine, said
from tests.shipped import SHIPPED
from transformer.config import ModelConfig
from transformer.faults.catalogue import FAULTS, HEALTHY, diagnoses, diagnosis_of
from transformer.faults.checked_models import checked_model
from transformer.faults.fault_checks import CHECKS
from transformer.faults.faulty_run import experiment_with_bug, padded
from transformer.faults.training_faults import trained_toy
from transformer.files.opening_file import read_opening
from transformer.runs.run import Run
from ui.words.texts import page_text

TEXT = page_text("lessons")["bugs"]
SENTENCE = "We went to the sea."
CHECKPOINTS = ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment")


@pytest.fixture
def open_exercise(open_app: Callable[..., AppTest]) -> Callable[..., AppTest]:
    def open_case(checkpoint: str, number: int = 0, sentence: str = SENTENCE) -> AppTest:
        app = open_app("lessons", checkpoint=checkpoint, sentence=sentence, exercise="bugs", patient=str(number))
        is_fine(app)
        return app

    return open_case


def first_case(fault: str, config: ModelConfig) -> int:
    return next(number for number in count() if diagnosis_of(number, config).fault == fault)


def outputs(app: AppTest) -> list[str]:
    """Return the outputs of both models; the page's question is the first heading of this size."""
    return [line.removeprefix("##### ") for line in said(app).splitlines() if line.startswith("##### ")][1:]


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", by_day(CHECKPOINTS, ("tiny-translator", "tiny-sentiment")))
def test_every_case_can_be_guessed(open_exercise, tiny_checkpoint, checkpoint: str) -> None:
    config = tiny_checkpoint(checkpoint).config
    app = open_exercise(checkpoint)
    for number in range(len(diagnoses(config))):
        app.number_input(key="patient").set_value(number).run()
        is_fine(app)
        assert not app.success and not app.info and not app.dataframe, "the pictures come first"
        fault = diagnosis_of(number, config).fault
        app.button(key=f"guess {fault}").click().run()
        is_fine(app)
        assert len(app.success) == 1 and len(app.dataframe) == 1
        assert app.button(key="guess scale").disabled


def test_nothing_gives_the_bug_away_before_the_guess(open_exercise, tiny_checkpoint) -> None:
    config = tiny_checkpoint("translator").config
    app, shown = open_exercise("tiny-translator"), {}
    for number in range(len(diagnoses(config))):
        app.number_input(key="patient").set_value(number).run()
        lines = {line for line in said(app).splitlines() if not line.startswith("#####")}  # without the outputs
        shown.setdefault(diagnosis_of(number, config).in_training, []).append(lines)
    assert all(lines == cases[0] for cases in shown.values() for lines in cases)


@pytest.mark.parametrize("fault", ["scale", "positions", "padding", "norm"])
def test_the_numbers_are_the_library_s(open_exercise, tiny_checkpoint, fault: str) -> None:
    checkpoint = tiny_checkpoint("translator")
    app = open_exercise("tiny-translator", first_case(fault, checkpoint.config))
    trace = transformer.trace(checkpoint, SENTENCE)
    found = experiment_with_bug(transformer.trace_of(padded(trace.run, len(trace.source))), fault)
    assert outputs(app)[0] == " ".join(found.answer_before.text.split())[:80] + "…" * (
        len(found.answer_before.text) > 80
    )
    app.button(key=f"guess {fault}").click().run()
    table = app.dataframe[-1].value
    checked, healthy = checked_model(trace, fault), checked_model(trace)
    assert list(table[TEXT["this_case"]]) == [three_digits(check(checked).value) for check in CHECKS.values()]
    assert list(table[TEXT["healthy"]]) == [three_digits(check(healthy).value) for check in CHECKS.values()]
    assert list(table[TEXT["column_fires"]]) == [TEXT["fires" if name == fault else "passes"] for name in FAULTS]


def test_a_bug_in_training_shows_what_the_tiny_models_write(open_exercise, tiny_checkpoint) -> None:
    number = first_case("target", tiny_checkpoint("gpt").config)
    app = open_exercise("tiny-gpt", number)
    before, after = (trained_toy(name).learner.generate("gradient") for name in ("healthy", "shifted_target"))
    assert before == "gradient" != after
    assert outputs(app) == [before, after]


def test_a_wrong_guess_names_both(open_exercise, tiny_checkpoint) -> None:
    app = open_exercise("tiny-bert", first_case("norm", tiny_checkpoint("bert").config))
    app.button(key="guess positions").click().run()
    is_fine(app)
    assert not app.success
    assert TEXT["full_positions"] in app.info[0].value
    assert "post-norm weights are run as pre-norm" in app.info[0].value  # tiny-bert was made as post-norm
    assert TEXT["final_post"] in said(app)


def test_from_the_list_to_the_exercise_to_the_next_case_and_back(open_app: Callable[..., AppTest]) -> None:
    app = open_app("lessons", checkpoint="tiny-translator", sentence=SENTENCE)
    app.button(key="start exercise").click().run()
    is_fine(app)
    app.button(key="another patient").click().run()
    assert app.number_input(key="patient").value == 1
    app.button(key="leave exercise").click().run()
    is_fine(app)
    assert app.button(key="start exercise")


def test_a_decoder_only_model_is_never_said_to_lack_a_padding_mask(open_exercise) -> None:
    assert TEXT["cannot_causal_mask_hides"] in said(open_exercise("tiny-gpt"))


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_a_short_sentence_is_no_problem(open_exercise, tiny_checkpoint, checkpoint: str) -> None:
    number = first_case("positions", tiny_checkpoint(checkpoint).config)
    app = open_exercise(checkpoint, number, sentence="a")
    app.button(key="guess positions").click().run()
    is_fine(app)


def test_a_model_that_reads_images_is_refused_in_a_sentence(
    open_app: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = open_app("lessons", checkpoint="vit-digits", exercise="bugs")
    is_fine(app)
    assert len(app.info) == 1
    assert not [one.key for one in app.get("bidi_component") if one.key.startswith("bug map")]


def test_the_snippet_runs_the_checks(open_exercise, tiny_checkpoint, run_snippet) -> None:
    config = tiny_checkpoint("sentiment").config
    for fault in ("scale", "causal"):
        app = open_exercise("tiny-sentiment", first_case(fault, config))
        app.button(key="guess norm").click().run()
        printed = run_snippet(next(code for code in codes(app) if "all_findings(checked)" in code))
        assert "fires=True" in next(line for line in printed.splitlines() if line.startswith(f"{fault} "))


def test_padding_is_as_long_as_the_model_can_read(tiny_checkpoint) -> None:
    run = Run(tiny_checkpoint("translator"), SENTENCE)
    longest = run.checkpoint.config.max_length
    assert padded(run, 9).source_pads == 4 and padded(run, longest).source_pads == 0
    assert padded(run, longest - 1).source_pads == 1 and padded(run, 0) is run


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in SHIPPED if path.name != "vit-digits"], ids=lambda path: path.name)
def test_every_bug_is_visible_on_the_opening_sentence(path: Path) -> None:
    """The output differs, or a head's map does by more than 0.1 bits on average over its rows."""
    checkpoint, opening = transformer.load(path), read_opening(path)
    run = Run(checkpoint, opening.first.sentence)
    plain = transformer.trace_of(run)
    trace = transformer.trace_of(padded(run, len(plain.source) if plain.source is not None else 0))
    for diagnosis in diagnoses(checkpoint.config):
        if diagnosis.in_training:
            continue
        found = experiment_with_bug(trace, diagnosis.fault)
        largest = max((float(np.max(found.head_differences(*pair))) for pair in trace.attention_kinds()), default=0.0)
        differs = found.answer_before.text != found.answer_after.text or largest > 0.1
        assert differs == (diagnosis.fault != HEALTHY), diagnosis
