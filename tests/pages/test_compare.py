"""The Compare page: two sentences, two checkpoints, three kinds of model, for every checkpoint."""

from __future__ import annotations

import shutil

import pytest

import transformer
from charts.canvas.attention_maps import SHIFTED_TITLE
from charts.toolkit.style import three_digits
from tests.conftest import ROOT
from tests.pages.conftest import choose_text, codes, is_fine, said
from transformer.predictions.comparison import difference_map, head_differences, word_diff
from ui.words.texts import page_text
from views.compare.run_comparison import marked
from views.compare.two_sentences import pairs_to_compare

TEXT = page_text("compare")
PAIRS = pairs_to_compare(TEXT)
KINDS = ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment")
PIE = "My grandmother bakes apple pie every Sunday."
SENTENCE, OTHER = "The old man told us a story.", "The old man told us a lie."


def with_second(app, sentence):
    app.text_input(key="second").set_value(sentence)
    return app.run()


@pytest.fixture
def drawn(monkeypatch):
    """Return the titles of the maps, in the order in which they were drawn."""
    maps = []
    monkeypatch.setattr("views.compare.run_comparison.show_map", lambda figure, **_: maps.append(figure.metadata))
    return maps


def in_mode(app, mode):
    choose_text(app, "compare_mode", mode)
    return app.run()


@pytest.mark.parametrize("checkpoint", KINDS)
def test_two_sentences(open_app, tiny_checkpoint, checkpoint, drawn):
    app = open_app("compare", checkpoint=checkpoint, sentence=SENTENCE, layer="1", head="1")
    is_fine(app)
    drawn.clear()
    assert app.text_input(key="second").value != SENTENCE, "it opens on something that differs"
    is_fine(with_second(app, OTHER))
    loaded = tiny_checkpoint(checkpoint)
    first, second = (transformer.trace(loaded, sentence) for sentence in (SENTENCE, OTHER))
    stack = app.query_params["stack"] if "stack" in app.query_params else first.stacks[0]
    stack = stack[0] if isinstance(stack, list) else stack
    views = [trace.attention(stack, 1) for trace in (first, second)]
    change = three_digits(difference_map(*views, head=1).mean_change)
    titles = [shown["title"] for shown in drawn]
    assert [title.partition(" · ")[0] for title in titles[:4]] == [TEXT["changed_row"], "A", "B", "B − A"]
    assert titles[3] == f"B − A · mean change {change}"
    largest = three_digits(float(head_differences(first, second, stack).max()))
    choose_text(app, "compare_more", "heads")
    assert f"The scale ends at the largest value, {largest}" in said(app.run())
    choose_text(app, "compare_more", "stream")
    is_fine(app.run())
    assert "differs most: cosine" in said(app)


def test_identical_sentences_change_nothing(open_app):
    app = with_second(open_app("compare", checkpoint="tiny-translator", sentence=SENTENCE), SENTENCE)
    assert TEXT["same_sentence"] in said(app)
    choose_text(app, "compare_more", "heads")
    assert TEXT["heads_equal"] in said(app.run())
    assert TEXT["heads_largest"].partition("{")[0] not in said(app)
    choose_text(app, "compare_more", "stream")
    is_fine(app.run())
    assert "differs most: cosine" not in said(app)


@pytest.mark.parametrize("writes", ["fr", "de"])
def test_a_pair_sets_both_sentences(open_app, monkeypatch, writes):
    monkeypatch.setattr("views.compare.two_sentences.guess_language", lambda text: writes)
    app = open_app("compare", checkpoint="tiny-translator", sentence=SENTENCE)
    pair = PAIRS[2]
    next(button for button in app.button if button.label == pair["label"]).click().run()
    is_fine(app)
    assert app.session_state["sentence"] == pair["first"]
    assert app.text_input(key="second").value == pair["second"]
    assert pair["shows"] in said(app) and (pair["in_french"] in said(app)) == (writes == "fr")


def test_sentence_b_follows_sentence_a_until_somebody_types(open_app):
    pair, other = PAIRS[1], PAIRS[2]
    app = open_app("compare", checkpoint="tiny-gpt", sentence=pair["first"])
    assert app.text_input(key="second").value == pair["second"]
    app.text_input(key="sentence").set_value(other["first"]).run()
    assert app.text_input(key="second").value == other["second"]
    with_second(app, OTHER)
    app.text_input(key="sentence").set_value(pair["first"]).run()
    assert app.text_input(key="second").value == OTHER
    app.switch_page("pages/tokens.py").run()
    app.switch_page("pages/compare.py").run()
    assert app.text_input(key="second").value == OTHER, "it survives a change of page"


@pytest.mark.parametrize(("kind", "checkpoint"), [*(("self", name) for name in KINDS), ("cross", "tiny-translator")])
def test_two_checkpoints(open_app, checkpoint, kind):
    # Without a place, the page opens on the head that the other pages open on, which may be of cross-attention.
    address = {"stack": "decoder", "kind": "cross"} if kind == "cross" else {"layer": "1", "head": "1"}
    app = in_mode(open_app("compare", checkpoint=checkpoint, sentence=SENTENCE, **address), "checkpoints")
    for other in KINDS:
        if other != checkpoint:
            app.selectbox(key="other").set_value(other)
            is_fine(app.run())
            assert f"B · {other}" in said(app)
            assert "The most similar is layer" in said(app) or TEXT["heads_none"] in said(app)
            assert ("has no cross-attention" in said(app)) == (kind == "cross")


def test_rows_of_cross_attention_are_the_tokens_predicted(open_app, drawn) -> None:
    is_fine(open_app("compare", checkpoint="tiny-translator", sentence=SENTENCE, stack="decoder", kind="cross"))
    assert [shown["row_title"] for shown in drawn[:3]] == [SHIFTED_TITLE] * 3
    assert "<s>" not in {shown["rows"][0] for shown in drawn[:3]}


def test_checkpoints_of_one_origin_show_the_same_head(open_app, checkpoints_folder, tmp_path, monkeypatch, drawn):
    for name in ("another", "en-fr", "en-fr-tuned"):
        shutil.copytree(checkpoints_folder / "tiny-translator", tmp_path / name)
    (tmp_path / "en-fr-tuned" / "README.md").write_text("| began as | the checkpoint `en-fr` |\n", encoding="utf-8")
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path))
    app = in_mode(open_app("compare", checkpoint="en-fr-tuned", sentence=SENTENCE, layer="1", head="0"), "checkpoints")
    is_fine(app)
    app.selectbox(key="other").set_value("another")
    is_fine(app.run())
    same = TEXT["kin_same"].format(head="layer 1, head 0")
    assert TEXT["kin_other"].format(name="en-fr-tuned", others="**en-fr**") in said(app) and same not in said(app)
    app.selectbox(key="other").set_value("en-fr")
    is_fine(app.run())
    titles = [shown["title"] for shown in drawn[-4:]]
    assert same in said(app) and "B − A · mean change 0" in titles, "here it is a copy"


def test_a_question_for_two_checkpoints_opens_both(open_app, checkpoints_folder, tmp_path, monkeypatch):
    """The pair is offered only if both are installed."""
    question = TEXT["checkpoint_pair"]["sharp"]["label"]
    for name in ("another", "en-fr"):
        shutil.copytree(checkpoints_folder / "tiny-translator", tmp_path / name)
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path))
    app = in_mode(open_app("compare", checkpoint="another", sentence=SENTENCE), "checkpoints")
    is_fine(app)
    assert question not in [button.label for button in app.button]
    shutil.copytree(checkpoints_folder / "tiny-translator", tmp_path / "en-fr-sharp")
    is_fine(app.run())
    assert TEXT["checkpoint_pair"]["sharp"]["shows"] not in said(app)
    next(button for button in app.button if button.label == question).click()
    is_fine(app.run())
    assert app.session_state["focus"].checkpoint == "en-fr"
    assert app.selectbox(key="other").value == "en-fr-sharp"
    assert TEXT["checkpoint_pair"]["sharp"]["shows"] in said(app)


@pytest.mark.parametrize("checkpoint", KINDS)
def test_three_kinds(open_app, checkpoint):
    app = in_mode(open_app("compare", checkpoint=checkpoint, sentence=SENTENCE, layer="1", head="1"), "kinds")
    is_fine(app)
    assert f"· {checkpoint}" in said(app), "the focused checkpoint stands for its kind"
    assert not app.info


def test_one_checkpoint_alone_says_what_is_missing(open_app, checkpoints_folder, tmp_path, monkeypatch):
    shutil.copytree(checkpoints_folder / "tiny-gpt", tmp_path / "tiny-gpt")
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path))
    app = in_mode(open_app("compare", checkpoint="tiny-gpt", sentence=SENTENCE), "checkpoints")
    is_fine(app)
    assert "only one checkpoint here" in app.info[0].value
    in_mode(app, "kinds")
    is_fine(app)
    assert [box.value for box in app.info] == [TEXT["kind_missing"]] * 2


@pytest.mark.parametrize(
    ("checkpoint", "sentence", "says"),
    [
        ("bert-en", PIE, "Change **grandmother** to **grandfather**, and the model still fills in **day**"),
        ("gpt-en", PIE, "Change **Sunday** to **Monday**, and to the model, the whole text is **"),
        ("gpt-en", "", "Change **milk** to **tea**, and **milk** disappears from the output"),
    ],
)
def test_the_headline_says_what_becomes_of_the_prediction(open_app, monkeypatch, checkpoint, sentence, says):
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = open_app("compare", checkpoint=checkpoint, masked="", **({"sentence": sentence} if sentence else {}))
    is_fine(app)
    assert says in said(app)
    assert TEXT["answer_none"] not in said(app)


def test_words_of_one_side_are_marked_where_they_stand():
    pieces = word_diff("J'aime ce  livre.", "Je n'aime *pas* ce livre.")
    assert marked(pieces, "removed", "blue") == ":blue-background[J'aime] ce livre\\."
    assert marked(pieces, "added", "orange") == ":orange-background[Je n'aime \\*pas\\*] ce livre\\."
    fewer = word_diff("Le chat dort.", "chat dort.")
    assert marked(fewer, "removed", "blue") == ":blue-background[Le] chat dort\\."
    assert marked(fewer, "added", "orange") == "chat dort\\."


def test_the_snippet_prints_the_difference(open_app, run_snippet, drawn):
    app = open_app("compare", checkpoint="tiny-translator", sentence=SENTENCE, layer="1", head="1")
    with_second(app, OTHER)
    snippet = next(code for code in codes(app) if "import transformer" in code)
    change = three_digits(float(run_snippet(snippet).split()[0]))
    assert f"B − A · mean change {change}" in [shown["title"] for shown in drawn]


@pytest.mark.parametrize(("mode", "loads"), [("checkpoints", 2), ("kinds", 3)])
def test_the_snippet_of_several_checkpoints_opens_them_all(open_app, run_snippet, mode: str, loads: int) -> None:
    app = open_app("compare", checkpoint="tiny-translator", sentence=SENTENCE, compare_mode=mode)
    snippet = next(code for code in codes(app) if "import transformer" in code)
    printed = run_snippet(snippet)
    assert len({line.split()[0] for line in printed.splitlines()}) == loads
    assert "tiny-translator decoder cross 1 (2, " in printed


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
