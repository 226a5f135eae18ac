"""The kit: texts escape what is put in; results are shared by their whole key, and print as Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import transformer
from transformer.attention_maps.rollout import attention_rollout
from transformer.runs.head_places import Head
from transformer.runs.run import Run
from ui.page import kit
from ui.page.kit import Kit
from ui.words.once_a_run import within_a_run
from ui.words.texts import as_plain

# ---- results --------------------------------------------------------------------------------------------------------


class Session(Kit):
    """A visitor's page about one sentence."""

    name = "sample"
    preamble = "import transformer\n\n"

    def __init__(self, checkpoint: transformer.Checkpoint, sentence: str = "The cat sat.") -> None:
        super().__init__()
        self.checkpoint, self.run = checkpoint, Run(checkpoint, sentence)
        self.trace = transformer.trace(checkpoint, sentence)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Callable:
    """Return a function of the library that counts its calls; results are kept in a store of their own."""
    monkeypatch.setattr(kit, "store", kit.store.__class__({"results": 10**6, "models": 1, "traces": 1, "figures": 1}))

    def weigh(*arguments: object, **named: object) -> list:
        weigh.calls += 1
        return [weigh.calls]

    weigh.calls, weigh.__module__, weigh.__qualname__ = 0, "transformer.runs.pretended", "weigh"
    return weigh


def test_two_sessions_share_a_result_only_if_everything_is_the_same(tiny_checkpoint, counted) -> None:
    checkpoint = tiny_checkpoint("translator")
    head = Head("encoder", "self", 0, 1)

    def ask(session: Session, *arguments: object, **named: object) -> list:
        with within_a_run():
            return session.calc(counted, *(arguments or (session.trace, 1, "a", head)), **named)

    first = ask(Session(checkpoint))
    assert ask(Session(checkpoint)) is first and counted.calls == 1
    others = [
        ask(Session(checkpoint, "The dog sat.")),  # another sentence
        ask(one := Session(checkpoint), one.trace, 2, "a", head),  # another argument
        ask(one, one.trace, 1.0, "a", head),  # equal, of another type
        ask(one, one.trace, True, "a", head),
        ask(one, one.trace, 1, "a", head._replace(head=0)),
        ask(one, one.trace, 1, "a"),
        ask(one, one.trace, 1, "a", named=head),  # a named one
        ask(one, one.trace, 1, "a", other=head),
        ask(one, one.checkpoint, 1, "a", head),
        ask(one, one.trace, 1, "a", head, reads=Path(__file__)),
    ]
    assert len({id(found) for found in (first, *others)}) == 11
    counted.__qualname__ = "other"  # a function with the same name in another module, or the reverse
    ask(one)
    counted.__module__ = "charts.pretended"
    ask(one)
    assert counted.calls == 13


def test_the_key_holds_the_whole_hash_of_the_files(tiny_checkpoint, counted) -> None:
    """Digits that a page shows are not enough: two checkpoints with one path may share them."""
    checkpoint = tiny_checkpoint("translator")
    session = Session(checkpoint)
    with within_a_run():
        session.calc(counted, checkpoint)
        whole = checkpoint.fingerprint
        checkpoint.__dict__["fingerprint"] = whole[:-1] + ("0" if whole[-1] != "0" else "1")
        try:
            session.calc(counted, checkpoint)
        finally:
            checkpoint.__dict__["fingerprint"] = whole
    assert counted.calls == 2


def test_a_result_is_an_argument_of_another(tiny_checkpoint, counted) -> None:
    session = Session(tiny_checkpoint("translator"))
    with within_a_run():
        rolled = session.calc(attention_rollout, session.trace, "encoder", name="rolled")
        found = session.calc(counted, rolled, [1, (2,)], name="found", shows=("[0]",))
        assert session.calc(counted, rolled, [1, (2,)], name="found") is found
        assert session.calc(counted, rolled, [1, (3,)], name="found") is not found
    assert session.python == (
        "import transformer\n\n\nfrom transformer.attention_maps.rollout import attention_rollout\n"
        "from transformer.runs.pretended import weigh\n\n"
        "rolled = attention_rollout(trace, 'encoder')\nfound = weigh(rolled, [1, (2,)])\nprint(found[0])\n"
        "found_2 = weigh(rolled, [1, (3,)])\n"
    )


def test_a_page_keeps_no_object_whose_method_it_called(tiny_checkpoint) -> None:
    session = Session(checkpoint := tiny_checkpoint("translator"))
    with within_a_run():
        assert session.calc(checkpoint.tokenizer.encode, "A cat.", name="ids") == checkpoint.tokenizer.encode("A cat.")
    assert session.python.endswith("ids = checkpoint.tokenizer.encode('A cat.')\n")
    assert not [function for function in session._used if hasattr(function, "__self__")]


def test_a_page_prints_only_what_a_reader_can_import(tiny_checkpoint) -> None:
    session = Session(tiny_checkpoint("translator"))
    with within_a_run():
        for function in (as_plain, lambda trace: trace):
            with pytest.raises(TypeError, match="which a reader cannot import"):
                session.calc(function, session.trace)
        with pytest.raises(TypeError, match="SimpleNamespace, which has no Python"):
            session.calc(attention_rollout, SimpleNamespace())
        with pytest.raises(TypeError, match="the name 'attention_rollout'"):
            session.calc(attention_rollout, session.trace, "encoder", name="attention_rollout")


def test_a_part_of_a_result_is_an_argument_of_another(tiny_checkpoint, counted) -> None:
    session = Session(tiny_checkpoint("translator"))
    with within_a_run():
        one, two = (
            session.calc(attention_rollout, session.trace, stack, name="rolled") for stack in ("encoder", "decoder")
        )
        found = [session.calc(counted, session.part(each, "query"), name="found") for each in (two, two, one)]
    assert found[0] is found[1] is not found[2]
    assert session.python.endswith("\nfound = weigh(rolled_2.query)\nfound_2 = weigh(rolled.query)\n")


def test_what_a_fragment_computes_again_replaces_its_lines(tiny_checkpoint, counted) -> None:
    session = Session(tiny_checkpoint("translator"))
    for number in (1, 2):
        with within_a_run():
            session.calc(counted, session.checkpoint, number)
    assert session.python.count("weigh_result") == 1 and "weigh(checkpoint, 2)" in session.python


def test_a_slow_result_runs_as_a_job_with_its_progress_if_it_has_one(tiny_checkpoint, counted, monkeypatch) -> None:
    def result(of: object, key: tuple, work: Callable, **_: object) -> object:
        return work("report")

    monkeypatch.setattr(kit.jobs, "result", result)
    session = Session(tiny_checkpoint("translator"))

    def plain(number: int) -> int:
        return number

    def reports(number: int, *, progress: object) -> object:
        return [number, progress]

    with within_a_run():
        for function in (plain, reports):
            function.__module__, function.__qualname__ = "transformer.runs.pretended", function.__name__
        assert session.calc(plain, 3, slow=True) == 3
        assert session.calc(reports, 3, slow=True) == [3, "report"]
