"""The Bugs page: figures without a name, a guess, and then the answer with the numbers of its check."""

from __future__ import annotations

import pytest

import transformer
from charts.canvas.attention_maps import NEXT_TITLE, attention_map
from charts.toolkit.style import three_digits
from tests.conftest import ROOT
from tests.nights import by_day
from tests.pages.conftest import codes, is_fine, said
from transformer.faults.catalogue import FAULTS, diagnoses, diagnosis_of, next_with
from transformer.faults.checked_models import checked_model
from transformer.faults.fault_checks import CHECKS
from transformer.faults.training_faults import trained_toy
from ui.words.texts import page_text

TEXT = page_text("bugs")
SENTENCE = "We went to the sea."
CHECKPOINTS = ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment")


def tables(app) -> list[list[str]]:
    return [list(table.value.columns) for table in app.dataframe]


def explained(app) -> bool:
    return TEXT["checks"] in said(app)


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", by_day(CHECKPOINTS, ("tiny-translator", "tiny-sentiment")))
def test_every_case_can_be_guessed(open_app, tiny_checkpoint, checkpoint):
    config = tiny_checkpoint(checkpoint).config
    app = open_app("bugs", checkpoint=checkpoint, sentence=SENTENCE, patient="0")
    for number in range(len(diagnoses(config))):
        app.number_input(key="patient").set_value(number).run()
        is_fine(app)
        assert not explained(app), "the pictures come first"
        assert not app.success and not app.info
        fault = diagnosis_of(number, config).fault
        app.button(key=f"guess {fault}").click().run()
        is_fine(app)
        assert len(app.success) == 1
        assert explained(app)
        assert f"**{number + 1}** of **{number + 1}**" in said(app)
        assert app.button(key="guess scale").disabled


def test_nothing_gives_the_bug_away_before_the_guess(open_app, tiny_checkpoint):
    config = tiny_checkpoint("translator").config
    app = open_app("bugs", checkpoint="tiny-translator", sentence=SENTENCE)
    pages = []
    for number in range(len(diagnoses(config))):
        app.number_input(key="patient").set_value(number).run()
        answers = {line for line in said(app).splitlines() if line.startswith("#####")}
        pages.append((diagnosis_of(number, config).in_training, set(said(app).splitlines()) - answers))
    of_maps = ("map_unlike", "case_moved", "case_alike", "map_reading", "map_predicting", "case_reading", "case_even")
    symptoms = [TEXT[name].partition("{")[0] for name in (*of_maps, "case_predicting", "sure")]
    for in_training in (True, False):  # apart from outputs, their probabilities and what a head does
        words = [
            {line for line in lines if not any(symptom in line for symptom in symptoms)}
            for kind, lines in pages
            if kind == in_training
        ]
        assert all(lines == words[0] for lines in words)


def test_maps_name_cross_attention_rows_as_the_sentence_does(open_app, tiny_checkpoint, monkeypatch):
    drawn, marked = [], []

    def record(view, **options):
        figure = attention_map(view, **options)
        drawn.append((view, options["shifted_labels"], figure.metadata["row_title"]))
        marked.append(options["selected"])
        return figure

    monkeypatch.setattr("views.bugs.symptoms.attention_map", record)
    config = tiny_checkpoint("translator").config
    number = next_with("scale", after=-1, config=config)
    place = {"checkpoint": "tiny-translator", "sentence": SENTENCE, "patient": str(number)}
    app = open_app("bugs", stack="decoder", kind="cross", layer="0", head="0", **place)
    is_fine(app)
    assert len(drawn) == 2
    (row, _), _other = marked
    label = drawn[0][1][row]
    assert TEXT["map_predicting"].partition("{key}")[0].format(query=label) in said(app), "its row is marked"
    for view, labels, title in drawn:
        assert view.kind == "cross"
        assert title == NEXT_TITLE, "a model with a bug need not predict these tokens"
        assert any(token.is_padding for token in view.key)
        following = view.query.displays[1:]  # a row predicts the token that the next row reads
        assert all(label.startswith(token) for label, token in zip(labels, following, strict=False))
    pad = next(token.display for token in drawn[0][0].key if token.is_padding).partition(" ×")[0]
    assert TEXT["why_pads"].format(padding=pad) in said(app)


def test_it_opens_on_a_case_whose_output_differs(open_app, tiny_checkpoint):
    app = open_app("bugs", checkpoint="tiny-translator", sentence=SENTENCE)
    number = app.number_input(key="patient").value
    assert diagnosis_of(number, tiny_checkpoint("translator").config).fault == "norm"
    app.button(key="guess norm").click().run()
    is_fine(app)
    assert len(app.success) == 1


def test_the_question_and_its_symptom_come_first_then_the_outputs_the_options_and_the_maps(open_app):
    app = open_app("bugs", checkpoint="tiny-translator", sentence=SENTENCE)
    order = [
        str(element.value if element.type == "markdown" else element.key)
        for element in app.main
        if element.type in ("markdown", "button")
    ]
    _title, question, *outputs = (number for number, found in enumerate(order) if found.startswith("#####"))
    assert TEXT["suspect"] in order[question] and TEXT["ask"] in order[question]
    assert len(outputs) == 2 and question < min(outputs)
    maps = [number for number, found in enumerate(order) if found.startswith(TEXT["map_predicting"].partition("{")[0])]
    assert max(outputs) < order.index("guess scale") < order.index("guess healthy") < maps[0]


def test_the_sidebar_offers_heads_once_one_is_chosen(open_app):
    address = {"checkpoint": "tiny-translator", "sentence": SENTENCE, "patient": "0"}
    labels = lambda app: [group.label for group in app.sidebar.get("button_group")]  # noqa: E731
    app = open_app("bugs", **address)
    assert "Layer" not in labels(app)
    app.segmented_control(key="shown_head").set_value("chosen").run()
    is_fine(app)
    assert "Layer" in labels(app)
    assert "Layer" in labels(open_app("bugs", **address, layer="1")), "an address that names a layer shows it"


def test_a_wrong_guess_says_both(open_app, tiny_checkpoint):
    number = next_with("norm", after=-1, config=tiny_checkpoint("bert").config)
    app = open_app("bugs", checkpoint="tiny-bert", sentence=SENTENCE, patient=str(number))
    app.button(key="guess positions").click().run()
    is_fine(app)
    assert not app.success
    message = app.info[0].value
    assert TEXT["full_positions"] in message
    assert "post-norm weights are run as pre-norm" in message  # tiny-bert was made as post-norm
    assert "γ = 1 and β = 0" in said(app)
    assert "**0** of **1**" in said(app)


@pytest.mark.parametrize("fault", ["scale", "positions", "padding", "norm"])
def test_the_numbers_are_the_library_s(open_app, tiny_checkpoint, fault):
    checkpoint = tiny_checkpoint("translator")
    number = next_with(fault, after=-1, config=checkpoint.config)
    app = open_app("bugs", checkpoint="tiny-translator", sentence=SENTENCE, patient=str(number))
    app.button(key=f"guess {fault}").click().run()
    trace = transformer.trace(checkpoint, SENTENCE)
    table = app.dataframe[-1].value
    checked, healthy = checked_model(trace, fault), checked_model(trace)
    assert list(table[TEXT["this_case"]]) == [three_digits(check(checked).value) for check in CHECKS.values()]
    assert list(table[TEXT["healthy"]]) == [three_digits(check(healthy).value) for check in CHECKS.values()]
    assert list(table[TEXT["column_fires"]]) == [TEXT["fires" if name == fault else "passes"] for name in FAULTS]


def test_a_training_shows_what_it_writes(open_app, tiny_checkpoint):
    number = next_with("target", after=-1, config=tiny_checkpoint("gpt").config)
    app = open_app("bugs", checkpoint="tiny-gpt", sentence=SENTENCE, patient=str(number))
    table = app.dataframe[-1].value
    assert table[TEXT["healthy"]][0] == trained_toy("healthy").learner.generate("gradient") == "gradient"
    assert table[TEXT["this_case"]][0] == trained_toy("shifted_target").learner.generate("gradient")


def test_a_teacher_goes_to_a_mistake_and_another_case_is_the_next(open_app, tiny_checkpoint):
    config = tiny_checkpoint("translator").config
    app = open_app("bugs", checkpoint="tiny-translator", sentence=SENTENCE)
    app.button(key="teacher causal").click().run()
    is_fine(app)
    number = app.number_input(key="patient").value
    assert diagnosis_of(number, config).fault == "causal"
    app.button(key="another patient").click().run()
    assert app.number_input(key="patient").value == number + 1


def test_a_decoder_only_model_is_never_said_to_lack_a_padding_mask(open_app):
    app = open_app("bugs", checkpoint="tiny-gpt", sentence=SENTENCE)
    assert TEXT["cannot_causal_mask_hides"] in said(app)
    assert not any(button.key == "teacher padding" for button in app.button)


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_a_short_sentence_is_no_problem(open_app, tiny_checkpoint, checkpoint):
    number = next_with("positions", after=-1, config=tiny_checkpoint(checkpoint).config)
    app = open_app("bugs", checkpoint=checkpoint, sentence="a", patient=str(number))
    is_fine(app)
    app.button(key="guess positions").click().run()
    is_fine(app)


def test_the_snippet_runs_the_checks(open_app, tiny_checkpoint, run_snippet):
    config = tiny_checkpoint("sentiment").config
    for fault in ("scale", "causal"):
        number = next_with(fault, after=-1, config=config)
        app = open_app("bugs", checkpoint="tiny-sentiment", sentence=SENTENCE, patient=str(number))
        app.button(key="guess norm").click().run()
        code = next(code for code in codes(app) if "CHECKS" in code and "import" in code)
        printed = run_snippet(code)
        line = next(line for line in printed.splitlines() if line.startswith(f"{fault} "))
        assert "fires=True" in line


def test_the_mistakes_of_an_unsure_original_are_not_taken_for_the_bug(open_app, monkeypatch):
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    address = {"checkpoint": "en-fr", "patient": "5"}
    unsure = open_app("bugs", sentence="My grandmother bakes apple pie every Sunday.", **address)
    is_fine(unsure)
    assert TEXT["healthy_unsure"] in said(unsure)
    sure = open_app("bugs", sentence="I love you.", **address)
    is_fine(sure)
    assert TEXT["healthy_unsure"] not in said(sure)


def test_a_class_seldom_changes_so_a_classifier_opens_on_attention_to_padding(open_app, tiny_checkpoint):
    app = open_app("bugs", checkpoint="tiny-sentiment", sentence=SENTENCE)
    number = app.number_input(key="patient").value
    assert diagnosis_of(number, tiny_checkpoint("sentiment").config).fault == "padding"
    assert all(TEXT[f"sign_{fault}"] in app.button(key=f"guess {fault}").label for fault in (*FAULTS, "healthy"))
