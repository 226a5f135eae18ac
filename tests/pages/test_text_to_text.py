"""A model of several tasks: every page opens with it, makes true statements, and offers its prefixes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

import transformer
from tests.pages.conftest import is_fine, said
from transformer.training.text_tasks import TEXT_TASKS
from ui.shell.navigation import ENTRIES
from ui.words.texts import model_sentences

PAGES = [name for name, entry in ENTRIES.items() if entry.exists]
SHIPPED = Path(__file__).parents[2] / "checkpoints"
ASKED = "fill: She is drinking a cup of ___."


@pytest.fixture(scope="module")
def folder(tiny_tokenizer: transformer.Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = transformer.ModelConfig(
        vocabulary_size=tiny_tokenizer.vocabulary_size, d_model=16, n_heads=2, d_ff=24, n_encoder_layers=2,
        n_decoder_layers=2, max_length=96, positions="relative", rms_norm=True, task_prefixes=tuple(TEXT_TASKS),
    )  # fmt: skip
    path = tmp_path_factory.mktemp("text-to-text")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformer.build_model(config)
        with torch.no_grad():  # γ and the relative bias are initialised to 1 and 0
            for parameter in model.parameters():
                parameter += 0.1 * torch.randn_like(parameter)
    transformer.save(path / "tiny-tasks", model, tiny_tokenizer, card="# tiny-tasks\n\nRandom weights.\n")
    return path


@pytest.fixture
def opened(open_app: Callable, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(folder))
    return open_app


def on_screen(app: AppTest) -> str:
    """Return sentences and formulas, without the glossary, which explains terms for any model."""
    lines = [line for line in said(app).splitlines() if not line.startswith("- **")]
    return "\n".join((*lines, *(latex.value for latex in app.latex))).replace(ASKED, "")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens_and_says_what_is_true(page: str, opened: Callable) -> None:
    """No LayerNorm, no subtracted mean, no translation: the task is to fill a blank."""
    view = {"positions view": "bias"} if page == "positions" else {}
    app = opened(page, checkpoint="tiny-tasks", sentence=ASKED, **view)
    is_fine(app)
    shown = on_screen(app)
    if page != "lessons":  # pages with models of their own, or about all models
        assert "LayerNorm" not in shown
        shown = shown.replace("which heads a translation model does not need", "")  # a result quoted from a paper
        assert "translat" not in shown, shown[max(0, shown.index("translat") - 200) :][:400]
    if page == "positions":
        assert "b_" in "\n".join(latex.value for latex in app.latex)
    if page == "add_norm":
        assert r"\text{RMSNorm}" in shown and r"\mu" not in shown
        assert not any("β" in tab.label for tab in app.tabs), "an RMSNorm has none"


@pytest.mark.slow
def test_tasks_are_chosen_with_an_example_each(opened: Callable) -> None:
    app = opened("masks", checkpoint="tiny-tasks", language="en", sentence="The cat sat on the mat.")
    assert any("every sentence began with a task" in caption.value for caption in app.caption)
    box = next(box for box in app.selectbox if box.label == "Task")
    assert tuple(box.options) == tuple(TEXT_TASKS)
    for prefix, example in model_sentences()["task_example"].items():
        next(box for box in app.selectbox if box.label == "Task").set_value(prefix).run()
        assert app.text_input(key="sentence").value == prefix + example
    assert not any("began with a task" in caption.value for caption in app.caption)
    assert any("several tasks, by prefix" in caption.value for caption in app.sidebar.caption)
    app.sidebar.menu_button(key="sidebar example").click_index(0).run()  # an example keeps the task
    assert app.query_params["sentence"] == "fill: The cat sat on the mat."
    app.text_input(key="sentence").set_value("fill: My own ___ here.").run()
    next(box for box in app.selectbox if box.label == "Task").set_value("sentiment: ").run()
    assert app.query_params["sentence"] == "sentiment: My own ___ here.", "what somebody typed stays"


def test_it_opens_with_a_task_which_leaves_with_it(
    open_app: Callable, folder: Path, checkpoints_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sentence without a task has no meaningful output, and other models were trained on no tasks."""
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", os.pathsep.join(map(str, (checkpoints_folder, folder))))
    first, *_ = TEXT_TASKS
    app = open_app("masks", checkpoint="tiny-tasks")
    assert app.text_input(key="sentence").value == first + "The cat sat on the mat."
    assert "sentence" not in app.query_params, "an address need not say what is there without it"
    app.selectbox(key="sidebar checkpoint").set_value("tiny-translator").run()
    assert app.text_input(key="sentence").value == "The cat sat on the mat."
    app.text_input(key="sentence").set_value("My own words.").run()
    app.selectbox(key="sidebar checkpoint").set_value("tiny-tasks").run()
    assert app.text_input(key="sentence").value == "My own words.", "what somebody typed stays"
    app.text_input(key="sentence").set_value("fill: My own ___.").run()
    app.selectbox(key="sidebar checkpoint").set_value("tiny-translator").run()
    assert app.text_input(key="sentence").value == "My own ___."


def test_an_address_opens_no_folder_beside_those_of_the_app(
    open_app: Callable, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "empty").mkdir()
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(folder / "empty"))
    app = open_app("overview", checkpoint="../tiny-tasks")
    assert app.text_input(key="sentence").value == "The cat sat on the mat."


def test_what_is_offered_keeps_the_task(opened: Callable) -> None:
    """The second sentence of a pair, and the sentence that Surgery patches from."""
    first, *_ = TEXT_TASKS
    compare = opened("compare", checkpoint="tiny-tasks", language="en")
    assert compare.text_input(key="second").value == first + "The cats sat on the mat."
    assert "B · “The cats sat on the mat.”" in said(compare), "and the task takes no room where both have it"
    surgery = opened("surgery", checkpoint="tiny-tasks")
    surgery.segmented_control(key="surgery more").set_value("patch").run()
    assert surgery.text_input(key="patch sentence").value.startswith(first)


def test_it_is_said_in_french(opened: Callable) -> None:
    app = opened("overview", checkpoint="tiny-tasks", language="fr", sentence="The cat sat on the mat.")
    assert any("chaque phrase commençait par un préfixe de tâche" in caption.value for caption in app.caption)
    assert any("plusieurs tâches, par préfixe" in caption.value for caption in app.sidebar.caption)


def test_the_shipped_model_does_its_tasks_in_their_examples() -> None:
    checkpoint, asked = transformer.load(SHIPPED / "t5-small-tasks"), model_sentences()["task_example"]
    assert checkpoint.config.task_prefixes == tuple(asked) == tuple(TEXT_TASKS)
    answers = {prefix: transformer.decode(checkpoint, prefix + sentence).text for prefix, sentence in asked.items()}
    assert list(answers.values()) == ["Elle lit un livre.", "Ein Hund rennt durch den Schnee.", "positive", "know"]
