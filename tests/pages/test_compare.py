"""The Compare page: two sentences, two checkpoints, the vector that carries a difference."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import transformer
from charts.toolkit.style import signed, three_digits
from tests.pages.conftest import KINDS, choose_text, is_fine, said
from tests.shipped import SHIPPED
from tests.transformer.guests.gguf_files import token_keys, write_gguf
from tests.transformer.guests.hugging_face import build
from tests.transformer.text.foreign_folders import byte_level
from transformer.interventions.activation_patching import contrast, patch_grid, recovered_shares
from transformer.interventions.attribution_patching import estimated_shares
from transformer.interventions.experiment import same_tokens
from transformer.predictions.comparison import difference_map
from ui.compute import loading
from ui.words.texts import model_sentences, page_text

TEXT = page_text("compare")
STACK = {name: "decoder" if name == "tiny-gpt" else "encoder" for name in KINDS}
SENTENCE, OTHER = "The old man told us a story.", "The old man told us a lie."


def with_second(app, sentence):
    app.text_input(key="second").set_value(sentence)
    return app.run()


@pytest.fixture
def drawn(monkeypatch):
    """Return the titles of the maps, in the order in which they were drawn."""
    maps = []
    monkeypatch.setattr("views.compare.compare_sections.show_map", lambda figure, **_: maps.append(figure.metadata))
    return maps


@pytest.mark.parametrize("checkpoint", KINDS)
def test_two_sentences(open_app, tiny_checkpoint, checkpoint, drawn):
    app = open_app("compare", checkpoint=checkpoint, sentence=SENTENCE, layer="1", head="1")
    is_fine(app)
    drawn.clear()
    assert app.text_input(key="second").value != SENTENCE, "it opens on something that differs"
    is_fine(with_second(app, OTHER))
    loaded = tiny_checkpoint(checkpoint)
    views = [transformer.trace(loaded, sentence).attention(STACK[checkpoint], 1) for sentence in (SENTENCE, OTHER)]
    change = three_digits(difference_map(*views, head=1).mean_change)
    titles = [shown["title"] for shown in drawn]
    assert [title.partition(" · ")[0] for title in titles[:4]] == [TEXT["changed_row"], "A", "B", "B − A"]
    assert titles[3] == f"B − A · mean change {change}"
    is_fine(choose_text(app, "compare_more", "stream").run())
    assert "differs most: cosine" in said(app)


def test_sentence_b_follows_sentence_a_until_somebody_types(open_app):
    first, other = (pair for name, pair in [*model_sentences()["pair"].items()][1:3])
    app = open_app("compare", checkpoint="tiny-gpt", sentence=first["first"])
    assert app.text_input(key="second").value == first["second"]
    app.text_input(key="sentence").set_value(other["first"]).run()
    assert app.text_input(key="second").value == other["second"]
    with_second(app, OTHER)
    app.text_input(key="sentence").set_value(first["first"]).run()
    app.switch_page("pages/tokens.py").run()
    app.switch_page("pages/compare.py").run()
    assert app.text_input(key="second").value == OTHER, "what is typed stays, also on another page"


def test_a_layer_of_the_paper_beside_a_llamas(open_app) -> None:
    app = open_app("compare")
    app.segmented_control(key="compare_mode").set_value("layers").run()
    assert not app.exception and not app.error
    formulas = [latex.value for latex in app.latex]
    assert any(r"N(x + A(x))" in formula for formula in formulas) and any(r"\odot" in formula for formula in formulas)
    table = app.dataframe[0].value
    assert (table["differs"] == "≠").sum() >= 8
    app.selectbox(key="layers_b").set_value(app.selectbox(key="layers_a").value).run()
    assert not (app.dataframe[0].value["differs"] == "≠").any()
    app.selectbox(key="layers_b").set_value("tiny-translator").run()
    assert not app.exception and not app.error


@pytest.mark.sample(of=3)
@pytest.mark.parametrize("name", [path.name for path in SHIPPED if path.name != "vit-digits"])
def test_every_shipped_checkpoint_opens_on_sentences_in_which_its_heads_differ(open_app, shipped_folder, name) -> None:
    app = open_app("compare", checkpoint=name)
    is_fine(app)
    assert TEXT["same_sentence"] not in said(app)
    assert "looks most at" in said(app), "in words, where the head that is shown attends in each"


def test_the_word_that_looks_is_named_in_both_and_the_factor_is_that_of_their_log_p(open_app, monkeypatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(SHIPPED[0].parent))
    app = open_app("compare", checkpoint="gpt-en", sentence="My grandmother baked a lemon cake on Sunday afternoon.")
    (line,) = [element.value for element in app.markdown if "Monday" in element.value and "head" in element.value]
    bold = re.findall(r"\*\*(.*?)\*\*", line)
    assert {"·Sunday", "·Monday"} <= {*bold}
    one, other = (float(found.replace("−", "-")) for found in re.findall(r"−\d+\.\d\d\b", said(app)))
    (factor,) = (float(found) for text in bold for found in re.findall(r"^\d[\d.]*", text))
    assert factor == pytest.approx(np.exp(other - one), rel=0.02)


CAT, DOG = "The cat sat on the mat.", "The dog sat on the mat."
Open = Callable[..., AppTest]


@pytest.fixture
def vector_maps(monkeypatch: pytest.MonkeyPatch) -> list:
    found: list = []
    monkeypatch.setattr("views.compare.which_vector.show_map", lambda figure, **_: found.append(figure))
    return found


@pytest.fixture
def open_part(open_app: Open) -> Open:
    def opened(checkpoint: str, sentence: str = CAT, second: str = DOG, **choices: str) -> AppTest:
        address = {"checkpoint": checkpoint, "sentence": sentence, "second": second, **choices}
        app = open_app("compare", compare_more="vectors", **address)
        is_fine(app)
        return app

    return opened


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["translator", "gpt"])
@pytest.mark.parametrize("section", ["tokens", "heads"])
def test_the_map_is_what_the_library_measures(open_part, tiny_checkpoint, vector_maps, kind, section):
    app = open_part(f"tiny-{kind}", paths_section=section, paths_tokens="true")
    both = contrast(transformer.trace(tiny_checkpoint(kind), CAT), DOG)
    turn = both.most_changed_turn
    grid = patch_grid(both, turn, heads=section == "heads")
    places = [place for row in grid for place in row if place is not None]
    expected = recovered_shares(both, turn, [places])[0]
    figure = vector_maps[-1]
    known = np.array([[place is not None for place in row] for row in grid])
    assert figure.arrays["values"][known] == pytest.approx(expected, abs=1e-5)
    assert (len(figure.metadata["rows"]), len(figure.metadata["columns"])) == known.shape
    if section == "tokens":
        app.toggle(key="paths_parts").set_value(True)
        is_fine(app.run())
        assert len(vector_maps[-1].arrays["values"]) > len(grid)
    asked = app.selectbox(key="paths_turn")
    is_fine(asked.set_value(asked.options[-1]).run())
    assert not np.array_equal(vector_maps[-1].arrays["values"], figure.arrays["values"]) or len(set(asked.options)) == 1


def test_sentences_of_different_lengths_are_explained(open_part: Open, vector_maps: list) -> None:
    app = open_part("tiny-translator", second="The cat.")
    assert "as many tokens" in app.info[0].value and not vector_maps


def test_a_long_sweep_is_estimated_until_it_is_asked_for(open_part, tiny_checkpoint, vector_maps, monkeypatch) -> None:
    monkeypatch.setattr("ui.sections.sweeps.LARGE", 0)
    first, second = "A dog sat on the mat.", "A cat sat on the mat."  # in no other test, whose result would be known
    app = open_part("tiny-translator", first, second, paths_section="heads")
    guess = vector_maps[-1]
    both = contrast(transformer.trace(tiny_checkpoint("translator"), first), second)
    turn = both.most_changed_turn
    places = [place for row in patch_grid(both, turn, heads=True) for place in row if place is not None]
    estimates = estimated_shares(both, turn, [places])[0]
    assert guess.arrays["values"].ravel() == pytest.approx(estimates, abs=1e-5)
    strongest = recovered_shares(both, turn, [places])[0][np.argmax(np.abs(estimates))]
    assert f"measured {signed(float(strongest))}" in said(app), "its error stands beside it"
    is_fine(app.button(key="sweep start").click().run())
    assert vector_maps[-1].metadata["value_name"] != guess.metadata["value_name"]
    assert not any(button.key == "sweep start" for button in app.button)


pytest.importorskip("gguf")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    backend = byte_level(special=("<s>", "</s>"))
    keys = token_keys(backend, "gpt2", pre="gpt-2", bos_token_id=0, eos_token_id=1)
    model = build("llama 3, biases", vocab_size=backend.get_vocab_size())
    found = [write_gguf(tmp_path / f"{name}.gguf", model, tokens=keys, packed=name) for name in ("F32", "F16", "BF16")]
    monkeypatch.setattr(loading, "_typed", {path.name: path for path in found})
    return found


def test_a_third_file_stands_beside_both(open_app, files: list[Path], monkeypatch) -> None:
    drawn: dict = {}
    monkeypatch.setattr(
        "views.compare.compare_sections.show_map", lambda figure, *, key, **_: drawn.update({key: figure})
    )
    address = {"checkpoint": "BF16.gguf", "sentence": CAT, "compare_mode": "checkpoints", "other": "F16.gguf"}
    app = open_app("compare", **address, layer=1, head=2)
    third = app.selectbox(key="compare_third")
    assert third.options == ["none", "F32.gguf"], "files of this model alone, and not those that are chosen already"
    is_fine(third.set_value("F32.gguf").run())
    original, half, packed = map(transformer.load, files)
    trace = transformer.trace(packed, CAT, strategy=transformer.Greedy(1))
    limits = set()
    for letter, checkpoint in (("", half), (" C", original)):
        run = same_tokens(trace, checkpoint=checkpoint)
        change = run.attention("decoder", 1).weights[2] - trace.attention("decoder", 1).weights[2]
        figure = drawn[f"compare map difference{letter}"]
        assert figure.arrays["values"] == pytest.approx(change, abs=1e-6)
        limits.add(figure.metadata["limit"])
    assert len(limits) == 1, "both differences on one scale"
    assert {"compare map A", "compare map B", "compare map C", "compare heads", "compare heads C"} <= drawn.keys()
    columns = next(table.value for table in app.dataframe if "C − A" in table.value.columns)
    logits = run.values("decoder.logits")[-1] - trace.values("decoder.logits")[-1]
    assert columns["C − A"].abs().max() <= np.abs(logits).max() + 1e-6
    assert "KL(A ‖ B)" in said(app) and "KL(A ‖ C)" in said(app)
