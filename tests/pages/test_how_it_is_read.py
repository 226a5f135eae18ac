"""How a sentence is read: as a chat, a task, a pair, in a language, or with a masked word."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import transformer
from charts.toolkit.style import three_digits
from tests.conftest import ROOT
from tests.foreign_checkpoints import MANY_LANGUAGES
from tests.pages.conftest import codes, is_fine, open_path, said
from tests.transformer.text.test_chat import TEMPLATE, gguf_of
from transformer.files.chats import with_prompt
from transformer.files.languages import with_languages
from transformer.runs.inputs import prompt_ids
from transformer.runs.next_sentence import next_sentence
from transformer.text.prompt import Prompt
from transformer.training.text_tasks import TEXT_TASKS
from ui.compute import loading
from ui.shell.focus import address_of, default_of, with_changes
from ui.words.model_terms import next_sentence_line
from ui.words.texts import common, model_sentences

pytest.importorskip("gguf")
SENTENCE = "The cat sat."
OWN = "The old man told us a story."


def box(app: AppTest, label: str) -> object:
    return next(box for box in app.selectbox if box.label == label)


def strip(app: AppTest) -> list[str]:
    """Return the tokens in the strip."""
    (found,) = (component for component in app.get("bidi_component") if component.key == "token strip")
    return [token["text"] for row in json.loads(found.proto.json)["rows"] for token in row["tokens"]]


# ---- chats ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def chat(open_app, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(loading, "_typed", {})
    path = gguf_of(tmp_path, TEMPLATE)
    is_fine(open_path(open_app("checkpoint"), path))
    return path


def part(app: AppTest, name: str) -> object:
    widgets = (*app.segmented_control, *app.text_input, *app.toggle)
    return next(widget for widget in widgets if widget.key.startswith(f"prompt {name} "))


def test_a_sentence_becomes_a_chat(open_app, chat) -> None:
    app = open_app("tokens", checkpoint=chat.name, sentence=SENTENCE)
    for name, value in (("way", "chat"), ("system", "Be short."), ("variables", '{"thinking": true}')):
        is_fine(part(app, name).set_value(value).run())
    prompt = Prompt(True, "Be short.", '{"thinking": true}')
    assert any(repr(prompt) in code and "with_prompt(checkpoint" in code for code in codes(app))
    again = open_app("attention", checkpoint=chat.name, sentence=SENTENCE, way="chat", system="Be short.")
    is_fine(again)
    ids = prompt_ids(with_prompt(transformer.load(chat), Prompt(True, "Be short.")), SENTENCE)
    assert again.session_state["focus"].token == len(ids) - 1, "the last token that was read"
    part(again, "variables").set_value("[").run()
    assert "JSON" in again.warning[0].value and not again.error
    other = open_app("tokens", checkpoint="tiny-gpt", sentence=SENTENCE, way="chat")
    is_fine(other)
    assert other.session_state["focus"].way == ""


def test_the_maps_hold_the_prompt_alone_until_more_is_asked_for(open_app, chat) -> None:
    count = len(prompt_ids(transformer.load(chat), SENTENCE))
    app = open_app("embeddings", checkpoint=chat.name, sentence=SENTENCE)
    is_fine(app)
    focus = app.session_state["focus"]
    assert (focus.token, focus.written) == (count - 1, 0) and len(strip(app)) == count
    assert any("Greedy(1)" in code for code in codes(app))
    is_fine(part(app, "written").set_value(True).run())
    assert app.session_state["focus"].token == count - 1, "the last token that was typed"
    assert len(strip(app)) > count and app.query_params["written"] in ("1", ["1"])


# ---- tasks and languages --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tasks_folder(tiny_tokenizer: transformer.Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = transformer.ModelConfig(
        vocabulary_size=tiny_tokenizer.vocabulary_size, d_model=16, n_heads=2, d_ff=24, n_encoder_layers=2,
        n_decoder_layers=2, max_length=96, positions="relative", rms_norm=True, task_prefixes=tuple(TEXT_TASKS),
    )  # fmt: skip
    path = tmp_path_factory.mktemp("text-to-text")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformer.save(path / "tiny-tasks", transformer.build_model(config), tiny_tokenizer)
    return path


def test_a_task_is_chosen_with_its_example_and_leaves_with_its_model(
    open_app: Callable, tasks_folder: Path, checkpoints_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sentence without a task has no meaningful output, and other models were trained on no tasks."""
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", os.pathsep.join(map(str, (checkpoints_folder, tasks_folder))))
    first, *_ = TEXT_TASKS
    app = open_app("tokens", checkpoint="tiny-tasks")
    default = app.text_input(key="sentence").value
    assert default.startswith(first) and "sentence" not in app.query_params
    for prefix, example in list(model_sentences()["task_example"].items())[1:]:
        box(app, "Task").set_value(prefix).run()
        assert app.text_input(key="sentence").value == prefix + example
    app.text_input(key="sentence").set_value("fill: My own ___.").run()
    box(app, "Task").set_value("sentiment: ").run()
    assert app.text_input(key="sentence").value == "sentiment: My own ___.", "what somebody typed stays"
    app.selectbox(key="sidebar checkpoint").set_value("tiny-translator").run()
    assert app.text_input(key="sentence").value == "My own ___."
    app.selectbox(key="sidebar checkpoint").set_value("tiny-tasks").run()
    assert app.text_input(key="sentence").value == "My own ___."


def test_the_shipped_model_does_its_tasks_in_their_examples() -> None:
    checkpoint, asked = transformer.load(ROOT / "checkpoints" / "t5-small-tasks"), model_sentences()["task_example"]
    assert checkpoint.config.task_prefixes == tuple(asked) == tuple(TEXT_TASKS)
    answers = [transformer.decode(checkpoint, prefix + sentence).text for prefix, sentence in asked.items()]
    assert answers == ["Elle lit un livre.", "Ein Hund rennt durch den Schnee.", "positive", "know"]


def test_a_language_is_chosen_beside_the_sentence_and_kept_in_the_link(open_app, guest_folder, monkeypatch) -> None:
    folder = guest_folder(*MANY_LANGUAGES, "hf-t5")
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(folder))
    app = open_app("tokens", checkpoint="hf-m2m100")
    is_fine(box(app, "Writes").set_value("fr").run())
    is_fine(box(app, "Reads").set_value("de").run())
    assert (app.query_params["reads"], app.query_params["writes"]) == ("de", "fr")
    assert any("with_languages(checkpoint, source='de', target='fr')" in code for code in codes(app))
    spoken = with_languages(transformer.load(folder / "hf-m2m100"), source="de", target="fr")
    trace, languages = transformer.trace(spoken, SENTENCE, "Le chat."), spoken.tokenizer.languages
    assert trace.source.ids[0] == languages["de"] and trace.target.ids[1] == languages["fr"]
    app = open_app("tokens", checkpoint="hf-marian-many", writes="fra", reads="xx")
    assert box(app, "Writes").value == "fra"
    assert any("'xx'" in caption.value for caption in app.caption)
    app.selectbox(key="sidebar checkpoint").set_value("hf-t5").run()
    assert "writes" not in app.query_params and not app.error


# ---- masked words and pairs -----------------------------------------------------------------------------------------


def masked_word(app: AppTest) -> object:
    return box(app, common("masked.word"))


def test_the_masked_word_goes_along_from_page_to_page_and_in_links(open_app) -> None:
    app = open_app("overview", checkpoint="tiny-bert", sentence=OWN, masked="")
    is_fine(app)
    assert masked_word(app).value == "2"
    for page in ("attention", "decoding", "lens"):
        app.switch_page(f"pages/{page}.py").run()
        is_fine(app)
        assert strip(app).count("<mask>") == 1, page
    is_fine(masked_word(app).set_value("1").run())
    assert app.session_state["focus"].masked == "1"
    is_fine(masked_word(app).set_value("none").run())
    assert "<mask>" not in strip(app)
    app = open_app("attention", checkpoint="tiny-bert", sentence=OWN, masked="0")
    assert strip(app)[1] == "<mask>" and masked_word(app).value == "0"
    address = address_of(app.session_state["focus"])
    assert address["masked"] == "0" and default_of(address).masked == ""
    wrong = open_app("tokens", checkpoint="tiny-bert", sentence=OWN, masked="99")
    assert masked_word(wrong).value == "2" and "masked='99'" in said(wrong)
    twice = masked_word(open_app("tokens", checkpoint="tiny-bert", sentence="the cat saw the man", masked="")).options
    assert len(set(twice)) == len(twice) == 6, "a word that occurs twice can be told apart"


def test_the_masked_word_stays_while_the_rest_of_the_sentence_is_edited(open_app) -> None:
    focus = open_app("tokens", checkpoint="tiny-bert", sentence=OWN, masked="1").session_state["focus"]
    assert with_changes(focus, sentence="The old man told us nothing.")[0].masked == "1"
    assert with_changes(focus, sentence="An entirely different sentence.")[0].masked == ""


PAIR = "The cat sat. || The dog sleeps under the table."


@pytest.mark.parametrize("page", ["overview", "decoding", "compare"])
@pytest.mark.parametrize("text", [PAIR, "The ___ sat. || The dog sleeps."])
def test_whether_one_sentence_follows_the_other_is_said(open_app, tiny_checkpoint, page, text) -> None:
    app = open_app(page, checkpoint="tiny-bert", sentence=text)
    is_fine(app)
    found = next_sentence(transformer.trace(tiny_checkpoint("bert"), text))
    assert three_digits(found.probability) in next_sentence_line(found) and next_sentence_line(found) in said(app)


def test_every_token_has_the_letter_and_the_vector_of_its_sentence(open_app, tiny_checkpoint) -> None:
    trace = transformer.trace(tiny_checkpoint("bert"), PAIR)
    app = open_app("tokens", checkpoint="tiny-bert", sentence=PAIR)
    (cards,) = (one for one in app.get("bidi_component") if one.key == "token cards")
    drawn = json.dumps(json.loads(cards.proto.json), ensure_ascii=False)
    first = [token.role for token in trace.source].index("end") + 1
    for token in trace.source:
        assert f"{token.id} · {'A' if token.index < first else 'B'}" in drawn
    for token in (1, len(trace.source) - 1):
        length = three_digits(float(np.linalg.norm(trace.values("encoder.embedding.segment")[token])))
        assert f"**{length}**" in said(open_app("embeddings", checkpoint="tiny-bert", sentence=PAIR, token=str(token)))


def test_half_a_pair_is_refused(open_app) -> None:
    app = open_app("overview", checkpoint="tiny-bert", sentence="The cat sat. ||")
    assert not app.exception and any("||" in one.value.replace("\\", "") for one in (*app.warning, *app.info))
