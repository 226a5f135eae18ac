"""The frame of a page, run by Streamlit itself: its content, and its reaction to every kind of error."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import codes, is_fine, said
from ui.page.page import Page, page
from ui.shell.focus import Focus
from ui.words import texts
from ui.words.once_a_run import begin_run, once_a_run

SAMPLE = 'title = "A sample"\nquestion = "What for?"\nlook_for = ["One.", "Two.", "Three."]\nmore = "More."\n'
EVERYTHING = ("stack", "kind", "layer", "head", "token")


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
        test.run()
        assert not test.exception
        return test

    return open_page


def words(test: AppTest) -> str:
    return "\n".join(element.value for kind in ("title", "markdown", "caption") for element in test.main.get(kind))


def kept(test: AppTest, name: str) -> object:
    """Return what the body of the page has kept in the session; ``None`` if it did not get so far."""
    return test.session_state[name] if name in test.session_state else None  # noqa: SIM401  (it has no get)


def test_a_page_says_its_title_its_question_and_three_things_to_look_at(run) -> None:
    test = run("st.write(p.text['more'], p.trace.text)")
    assert all(expected in words(test) for expected in ("A sample", "What for?", "One.", "Two.", "Three.", "More."))


@pytest.mark.parametrize(("checkpoint", "boxes", "choices"), [
    ("tiny-translator", ["sentence", "sidebar target"], ["choose kind", "choose layer", "choose head"]),
    ("tiny-gpt", ["sentence"], ["choose layer", "choose head"]),
    ("tiny-bert", ["sentence"], ["choose layer", "choose head"]),
    ("tiny-sentiment", ["sentence"], ["choose layer", "choose head"]),
])  # fmt: skip
def test_the_frame_offers_what_a_model_takes_where_a_page_asks(
    run, checkpoint: str, boxes: list, choices: list
) -> None:
    test = run("st.write(p.checkpoint.name)", needs=EVERYTHING, checkpoint=checkpoint)
    assert not test.error and checkpoint in words(test)
    assert [box.key for box in test.text_input][: len(boxes)] == boxes
    assert [box.key for box in test.main.selectbox] == choices
    assert bool(test.sidebar.number_input) is (checkpoint != "tiny-gpt")
    assert [box.key for box in run(checkpoint=checkpoint).main.selectbox] == []


def test_an_address_is_followed_and_corrected_in_one_line_each(run) -> None:
    test = run(needs=("layer", "head"), layer="9", head="1", token="99", checkpoint="gone")
    assert (test.session_state["seen"].layer, test.session_state["seen"].head) == (1, 1)

    def corrections() -> list[str]:
        told = [caption.value for caption in test.main.caption]
        return [word for word in ("gone", " 9 ", " 99 ") if any(word in caption for caption in told)]

    assert corrections() == ["gone", " 9 ", " 99 "]
    test.run()  # as a page does by itself when something is ready
    assert corrections() == ["gone", " 9 ", " 99 "]
    test.selectbox(key="choose layer").set_value(0).run()
    assert corrections() == []


def test_typing_begins_at_the_first_token_and_a_click_with_the_address_of_before_is_kept(run) -> None:
    test = run(needs=("layer", "head"), token="3")
    test.text_input(key="sentence").set_value("The dog sleeps.").run()
    assert (test.session_state["seen"].sentence, test.session_state["seen"].token) == ("The dog sleeps.", 0)
    late = dict(test.query_params)
    test.selectbox(key="choose layer").set_value(1).run()
    test.query_params.clear()
    test.query_params.update(late)
    test.selectbox(key="choose head").set_value(1).run()
    assert test.query_params == {"sentence": "The dog sleeps.", "layer": "1", "head": "1"}
    assert run().session_state["seen"].sentence == texts.model_sentences()["default"], "another session has its own"


def test_a_target_and_padding_are_read(run) -> None:
    test = run("st.session_state['read'] = p.trace.forced, p.trace.target.text, p.trace.source.displays[-2:]")
    test.text_input(key="sidebar target").set_value("Le chien dort.").run()
    test.sidebar.number_input[0].set_value(2).run()
    assert kept(test, "read") == (True, "Le chien dort.", ("<pad>", "<pad>"))
    assert test.session_state["seen"].pads == 2 and r"2 \<pad\>" in words(test)


def test_what_a_user_typed_is_never_markup_in_a_message(run) -> None:
    test = run("import transformer; raise transformer.InputError('no **bold** <b>')")
    assert test.warning[0].value == r"no \*\*bold\*\* \<b\>"
    test = run("{}['missing **key**']")
    assert r"missing \*\*key\*\*" in test.error[0].value
    details = next(box for box in test.main.expander if box.code)
    assert not details.proto.expanded and "Traceback" in details.code[0].value


def test_a_page_may_end_early_or_change_the_focus(run) -> None:
    test = run("p.nothing_to_show('Only a translator has this.'); st.session_state['reached'] = True")
    assert [info.value for info in test.info] == ["Only a translator has this."]
    assert kept(test, "reached") is None and not test.error
    assert run("p.focus.head == 1 or p.set_focus(head=1)", needs=("head",)).session_state["seen"].head == 1
    with pytest.raises(ValueError, match="colour"), page("sample", needs=("colour",)):
        pass


def test_a_broken_checkpoint_is_named_and_without_any_the_page_says_what_to_do(
    run, tmp_path: Path, monkeypatch, checkpoints_folder
) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(checkpoints_folder / "tiny-gpt", folder / "mine")
    (folder / "mine" / "model.safetensors").write_bytes(b"no weights")
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(folder))
    (error,) = run().error  # that is all: the rest of the page still works
    assert "mine" in error.value
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path / "nowhere"))
    (warning,) = run().warning
    assert "GLASSFORMER" in warning.value and "nowhere" in warning.value


def test_a_snippet_begins_with_what_was_really_traced(run, checkpoints_folder) -> None:
    body = (
        "from dataclasses import replace\nst.session_state['preamble'] = p.preamble\n"
        "other = replace(p.run, source_pads=0, sentence='B')\n"
        "st.session_state['other'] = p._known_as(p.trace_of(other)).python"
    )
    page = run(body, sentence='It\'s "here"', target="Là", pads="2")
    written = "transformer.trace(checkpoint, 'It\\'s \"here\"', target='Là', source_pads=2)"
    assert kept(page, "preamble").splitlines()[-1] == f"trace = {written}"
    assert kept(page, "other") == "transformer.trace(checkpoint, 'B', target='Là')", "also of another run"
    page = run(body, checkpoint="tiny-gpt", pads="2", written="0")
    assert f'transformer.load("{checkpoints_folder / "tiny-gpt"}")' in kept(page, "preamble")
    assert "source_pads" not in kept(page, "preamble")
    assert kept(page, "other") == "transformer.trace(checkpoint, 'B', strategy=transformer.Greedy(1))"


def test_presenting_leaves_out_code_and_examples_and_is_in_the_address(open_app) -> None:
    look_for = texts.page_text("embeddings").look_for[0]
    for value, is_plain in (("0", True), ("1", False)):
        app = open_app("embeddings", presenter=value)
        is_fine(app)
        assert (look_for in said(app)) is bool(codes(app)) is bool(app.sidebar.menu_button) is is_plain
    app = open_app("tokens", sentence="Hello there.")
    for is_on in (True, False):
        app.toggle(key="sidebar presenter").set_value(is_on).run()
        is_fine(app)
        assert ("presenter" in app.query_params) is is_on
    assert app.query_params["sentence"] in ("Hello there.", ["Hello there."])


# ---- what a run costs -----------------------------------------------------------------------------------------------


def test_no_style_of_every_page_makes_each_change_of_it_expensive() -> None:
    """``a:has(b) c`` makes Chromium recompute all styles whenever anything is added, which takes long."""
    shell = texts.ROOT / "ui" / "shell"
    for path in [*(shell.parent / "page").glob("*.css"), shell / "guidance" / "lesson_bar.css"]:
        assert not re.search(r":has\([^{,]*\)\s+[\w.#*\[]", path.read_text(encoding="utf-8")), path


def test_a_page_does_not_wait_until_the_trace_of_another_person_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, end = threading.Event(), threading.Event()

    def load(sentence: str) -> str:
        if sentence == "slow":
            begun.set()
            assert end.wait(60)
        return f"trace of {sentence}"

    monkeypatch.setattr("ui.page.page.load_trace", load)
    monkeypatch.setattr("ui.page.page._run_of", lambda _, focus: focus.sentence)
    slow, quick = (Page("attention", Focus(sentence=sentence)) for sentence in ("slow", "quick"))
    with ThreadPoolExecutor() as pool:
        try:
            first = pool.submit(lambda: slow.trace)
            assert begun.wait(60)
            assert pool.submit(lambda: quick.trace).result(timeout=60) == "trace of quick"
        finally:
            end.set()
        assert first.result(timeout=60) == "trace of slow"


def test_a_value_is_read_once_within_a_run_and_again_in_the_next() -> None:
    values = iter(range(10))
    ask = once_a_run(lambda: next(values))

    def run() -> None:
        begin_run()
        assert (ask(), ask()) == (0, 0)
        begin_run()
        assert ask() == 1

    Context().run(run)
    assert (ask(), ask()) == (2, 3), "where no run has begun, nothing is kept"
