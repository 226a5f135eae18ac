"""The frame of a page, run by Streamlit itself: its content, and its reaction to every kind of error."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from ui.page import page as shell_page
from ui.page.page import Page, page
from ui.shell.focus import Focus
from ui.words import texts

SAMPLE = 'title = "A sample"\nquestion = "What for?"\nlook_for = ["One.", "Two.", "Three."]\nmore = "More."\n'


def _frame(body: str, needs: tuple[str, ...]) -> None:
    """Runs inside AppTest, which copies only the source of this function."""
    import streamlit as st

    from ui.page.page import page
    from ui.shell.focus import begin, current
    from ui.shell.sentence import sentence_box
    from ui.shell.sidebar import sidebar

    begin()
    sidebar()
    sentence_box()
    with page("sample", needs=needs) as p:
        exec(body, {"p": p, "st": st})
    st.session_state["seen"] = current()


@pytest.fixture
def run(checkpoints_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """Return ``run(body, needs=(), layer="1")``, which opens a page with that body and these parameters."""
    for folder in ("ui", "charts"):
        shutil.copytree(texts.ROOT / folder / "words", tmp_path / folder / "words")
    (tmp_path / "views" / "sample").mkdir(parents=True)
    (tmp_path / "views" / "sample" / "en.toml").write_text(SAMPLE, encoding="utf-8")
    monkeypatch.setattr(texts, "ROOT", tmp_path)

    def open_page(body: str = "pass", *, needs: tuple[str, ...] = (), **address: str) -> AppTest:
        test = AppTest.from_function(_frame, args=(body, needs), default_timeout=60)
        for name, value in address.items():
            test.query_params[name] = value
        return test.run()

    return open_page


def words(test: AppTest) -> str:
    return "\n".join(element.value for kind in ("title", "markdown", "caption") for element in test.main.get(kind))


def test_a_page_says_its_title_its_question_and_three_things_to_look_at(run) -> None:
    test = run("st.write(p.text['more'], p.trace.text)")
    assert not test.exception
    assert [title.value for title in test.title] == ["A sample"]
    for expected in ("What for?", "One.", "Two.", "Three.", "More."):
        assert expected in words(test)


def test_the_frame_offers_everything_that_a_translator_takes(run) -> None:
    test = run(needs=("stack", "kind", "layer", "head", "token"))
    assert [box.label for box in test.text_input] == ["Sentence", "Target text"]
    assert [number.label for number in test.sidebar.number_input] == ["Padding tokens"]
    assert [box.label for box in test.sidebar.selectbox] == ["Checkpoint"]
    assert [box.label for box in test.main.selectbox] == ["Attention", "Layer", "Head"]
    assert [menu.label for menu in test.sidebar.menu_button] == ["Examples"]


def test_selectors_come_only_where_a_page_asks_and_the_model_leaves_a_choice(run) -> None:
    assert [box.label for box in run().main.selectbox] == []
    writer = run(needs=("stack", "kind", "layer"), checkpoint="tiny-gpt")
    assert [box.label for box in writer.main.selectbox] == ["Layer"]
    assert [number.label for number in writer.sidebar.number_input] == []
    judge = run(needs=("stack", "head"), checkpoint="tiny-sentiment")
    assert [box.label for box in judge.text_input] == ["Sentence"]


@pytest.mark.parametrize("checkpoint", ["tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"])
def test_every_kind_of_checkpoint_has_a_page(run, checkpoint: str) -> None:
    test = run("st.write(p.checkpoint.name)", needs=("stack", "kind", "layer", "head", "token"), checkpoint=checkpoint)
    assert not test.exception
    assert not test.error
    assert checkpoint in words(test)


def test_an_address_is_followed_and_corrected_in_one_line_each(run) -> None:
    test = run("st.write(str(p.focus))", needs=("layer", "head"), layer="9", head="1", token="99", checkpoint="gone")
    assert "layer=1, head=1" in words(test)
    captions = [caption.value.replace("\\", "") for caption in test.main.caption]
    assert any("There is no checkpoint 'gone' here; showing 'tiny-translator'." in caption for caption in captions)
    assert any("There is no layer 9 (this model has layers 0–1); showing layer 1." in caption for caption in captions)
    assert any("There is no token 99" in caption for caption in captions)
    test.run()  # as a page does by itself when something is ready
    assert any("There is no layer" in caption.value for caption in test.main.caption)
    test.selectbox(key="choose layer").set_value(0).run()
    assert not any("There is no" in caption.value for caption in test.main.caption)


def test_typing_a_sentence_changes_the_focus_and_begins_at_its_first_token(run) -> None:
    test = run("st.write(p.trace.source.text)", token="3", layer="1")
    test.text_input(key="sentence").set_value("The dog sleeps.").run()
    assert "The dog sleeps." in words(test)
    seen = test.session_state["seen"]
    assert (seen.sentence, seen.token, seen.layer) == ("The dog sleeps.", 0, 1)


def test_a_click_that_comes_with_the_address_of_before_is_kept(run) -> None:
    test = run(needs=("layer", "head"))
    test.text_input(key="sentence").set_value("The dog sleeps.").run()
    late = dict(test.query_params)
    test.selectbox(key="choose layer").set_value(1).run()
    test.query_params.clear()
    test.query_params.update(late)
    test.selectbox(key="choose head").set_value(1).run()
    seen = test.session_state["seen"]
    assert (seen.sentence, seen.layer, seen.head) == ("The dog sleeps.", 1, 1)
    assert test.query_params == {"sentence": "The dog sleeps.", "layer": "1", "head": "1"}


def test_a_target_is_read_instead_of_an_answer(run) -> None:
    test = run("st.write('forced', p.trace.forced, p.trace.target.text)")
    test.text_input(key="sidebar target").set_value("Le chien dort.").run()
    assert "forced True" in words(test).replace("`", "")
    assert "Le chien dort." in words(test)


def test_padding_is_said_and_seen(run) -> None:
    test = run("st.write(p.trace.source.displays[-1])")
    test.sidebar.number_input[0].set_value(2).run()
    assert "2 \\<pad\\> tokens were added to the source" in words(test)
    assert test.session_state["seen"].pads == 2


@pytest.mark.parametrize("sentence", ["", "   ", "word " * 300])
def test_bad_input_gets_a_sentence_and_stays_in_its_box(run, sentence: str) -> None:
    test = run("st.write('never reached')")
    test.text_input(key="sentence").set_value(sentence).run()
    assert not test.exception
    assert len(test.warning) == 1
    assert test.text_input(key="sentence").value == sentence
    assert "never reached" not in words(test)


def test_a_target_that_is_too_long_says_so_with_both_numbers(run) -> None:
    test = run()
    test.text_input(key="sidebar target").set_value("mot " * 300).run()
    assert "96" in test.warning[0].value
    assert "target" in test.warning[0].value


@pytest.mark.parametrize(
    "sentence", ["<script>alert(1)</script>", "**bold** $x$ :red[no]", "</s> <pad>", "zwei\nZeilen", "😀"]
)
def test_odd_text_is_only_text(run, sentence: str) -> None:
    test = run("st.session_state['text'] = p.trace.source.text", sentence=sentence)
    assert not test.exception
    assert not test.error
    assert test.session_state["text"] == sentence


def test_what_a_user_typed_is_never_markup_in_a_message(run) -> None:
    test = run("import transformer; raise transformer.InputError('no **bold** <b>')")
    assert test.warning[0].value == r"no \*\*bold\*\* \<b\>"


def test_an_unexpected_error_becomes_a_sentence_with_details_folded_away(run) -> None:
    test = run("{}['missing **key**']")
    assert not test.exception
    assert "Something went wrong" in test.error[0].value
    assert r"missing \*\*key\*\*" in test.error[0].value
    details = next(box for box in test.main.expander if box.code)
    assert not details.proto.expanded
    assert "Traceback" in details.code[0].value


def test_a_page_with_nothing_to_show_says_one_line_and_ends(run) -> None:
    test = run("p.nothing_to_show('Only a translator has this.'); st.write('never reached')")
    assert [info.value for info in test.info] == ["Only a translator has this."]
    assert "never reached" not in words(test)
    assert not test.error


def test_set_focus_changes_the_focus_and_runs_again(run) -> None:
    test = run("p.focus.head == 1 or p.set_focus(head=1)\nst.write('head', p.focus.head)", needs=("head",))
    assert "head 1" in words(test).replace("`", "")
    assert test.session_state["seen"].head == 1


def test_a_broken_checkpoint_is_named_with_what_is_wrong(run, tmp_path: Path, monkeypatch, checkpoints_folder) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(checkpoints_folder / "tiny-gpt", folder / "mine")
    (folder / "mine" / "model.safetensors").write_bytes(b"no weights")
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(folder))
    test = run()
    assert not test.exception
    (error,) = test.error  # that is all: the rest of the page still works
    assert "checkpoint mine cannot be opened" in error.value


def test_without_any_checkpoint_the_page_says_what_to_do(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path / "nowhere"))
    test = run()
    assert not test.exception
    assert "GLASSFORMER" in test.warning[0].value
    assert "nowhere" in test.warning[0].value


def test_a_snippet_begins_with_what_was_really_traced(run, checkpoints_folder) -> None:
    body = "st.session_state['preamble'] = p.preamble"
    test = run(body, sentence='It\'s "here"', target="Là", pads="2")
    assert test.session_state["preamble"].splitlines()[-1] == (
        "trace = transformer.trace(checkpoint, 'It\\'s \"here\"', target='Là', source_pads=2)"
    )
    plain = run(body, checkpoint="tiny-gpt", pads="2").session_state["preamble"]
    assert f'transformer.load("{checkpoints_folder / "tiny-gpt"}")' in plain
    assert "source_pads" not in plain


def test_two_sessions_never_share_a_focus(run) -> None:
    one, other = run(), run()
    one.text_input(key="sentence").set_value("Only mine.").run()
    assert other.run().session_state["seen"].sentence == "The cat sat on the mat."


def test_an_unknown_need_is_refused() -> None:
    with pytest.raises(ValueError, match=r"needs \['colour'\], which is unknown"), page("sample", needs=("colour",)):
        pass


def test_no_style_of_every_page_makes_each_change_of_it_expensive() -> None:
    """``a:has(b) c`` makes Chromium recompute all styles whenever anything is added.

    That was measured as ten times the work of a Plotly figure.
    """
    shell = texts.ROOT / "ui" / "shell"
    styles = [
        shell.parent / "page" / "page.css",
        shell / "guidance" / "lesson_bar.css",
        *(shell / "presentation").glob("*.css"),
    ]
    assert len(styles) == 3
    for path in styles:
        assert not re.search(r":has\([^{,]*\)\s+[\w.#*\[]", path.read_text(encoding="utf-8")), path


def test_the_style_of_a_page_is_sent_before_its_model_opens(run, monkeypatch: pytest.MonkeyPatch) -> None:
    order, style, opens = [], shell_page._style, shell_page._open_checkpoint
    monkeypatch.setattr(shell_page, "_style", lambda: (order.append("style"), style())[1])
    monkeypatch.setattr(shell_page, "_open_checkpoint", lambda p: (order.append("model"), opens(p))[1])
    assert not run().exception
    assert order == ["style", "model"], "the title would move when the model is there"


def test_a_page_does_not_wait_until_the_trace_of_another_person_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, end = threading.Event(), threading.Event()

    def load(sentence: str) -> str:
        if sentence == "slow":
            begun.set()
            assert end.wait(60)
        return f"trace of {sentence}"

    monkeypatch.setattr("ui.page.page.load_trace", load)
    monkeypatch.setattr(Page, "run", property(lambda self: self.focus.sentence))
    slow, quick = (Page("attention", Focus(sentence=sentence)) for sentence in ("slow", "quick"))
    with ThreadPoolExecutor() as pool:
        try:
            first = pool.submit(lambda: slow.trace)
            assert begun.wait(60)
            assert pool.submit(lambda: quick.trace).result(timeout=60) == "trace of quick"
        finally:
            end.set()
        assert first.result(timeout=60) == "trace of slow"
