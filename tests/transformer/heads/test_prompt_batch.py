"""Batches of prompts equal single calls, and invalid files are refused."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable
from pathlib import Path

import pytest

import transformer
from tests.transformer.interventions.test_activation_patching import CLEAN, KINDS, corrupted
from transformer.attribution.direct_logit_attribution import attribute
from transformer.errors import InputError
from transformer.heads.head_roles import head_roles, summarise
from transformer.heads.prompt_batch import (
    MOST_BYTES,
    WHOLE,
    Line,
    PartOverLines,
    PromptBatch,
    Spread,
    cases_of,
    prompt_batch,
    read_lines,
    token_of,
)
from transformer.interventions.activation_patching import (
    Contrast,
    Place,
    Turn,
    contrast,
    head_places,
    recovered_shares,
    replace_turn_tokens,
    token_places,
)
from transformer.interventions.attribution_patching import estimated_shares
from transformer.runs.head_places import Head


def pairs_of(checkpoint: transformer.Checkpoint, kind: str) -> list[tuple[str, str]]:
    other = corrupted(checkpoint)
    pairs = [(CLEAN, other), (other, CLEAN)]
    return [(a.replace("sat", "___"), b.replace("sat", "___")) for a, b in pairs] if kind == "bert" else pairs


def measured(checkpoint: transformer.Checkpoint, pairs: list[tuple[str, str]], **more: object) -> PromptBatch:
    cases, problems = cases_of(checkpoint, [Line(at, *pair) for at, pair in enumerate(pairs, 1)])
    assert not problems
    return prompt_batch(checkpoint, cases, **more)


def single(checkpoint: transformer.Checkpoint, sentence: str) -> transformer.Trace:
    return transformer.trace(checkpoint, sentence, strategy=transformer.Greedy(1))


def same(spread: Spread, values: list[float]) -> None:
    assert spread.count == len(values)
    assert spread.mean == pytest.approx(statistics.mean(values), abs=1e-4)
    assert spread.std == pytest.approx(statistics.stdev(values), abs=1e-4)


def places_of(part: PartOverLines, both: Contrast, turn: Turn) -> list[Place]:
    """Return the locations of a part, from the lists that the page patches for one pair."""
    if part.kind == "feed_forward":
        rows, name = token_places(both, turn, part.stack), part.kind
    else:
        rows, name = head_places(both, part.stack), f"{part.kind}_heads"
    whole = next(row for row in rows if (row[0].part, row[0].layer) == (name, part.layer))
    return whole if part.head == WHOLE else [whole[part.head]]


@pytest.mark.parametrize("kind", KINDS)
def test_means_and_spreads_are_those_of_single_calls(kind: str, tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint(kind)
    pairs = pairs_of(checkpoint, kind)
    found = measured(checkpoint, pairs, largest=3)
    traces = [single(checkpoint, clean) for clean, _ in pairs]
    both = [contrast(trace, other) for trace, (_, other) in zip(traces, pairs, strict=True)]
    turns = [each.turns[0] for each in both]
    assert found.gap.mean == pytest.approx(statistics.mean(turn.clean - turn.corrupt for turn in turns))
    row = None if checkpoint.config.n_classes else turns[0].row
    told = [
        attribute(trace, row, token=turn.answer, against=turn.other) for trace, turn in zip(traces, turns, strict=True)
    ]
    for part in found.parts:
        name = part.kind if part.kind == "feed_forward" else f"{part.kind}_attention"
        if part.stack != told[0].target.stack:
            assert part.attribution.count == 0  # its output reaches the word through the other stack only
        else:
            tables = [each.table(name)[part.layer] for each in told]
            same(part.attribution, [float(table.sum() if part.head == WHOLE else table[part.head]) for table in tables])
        gained, truly = [], []
        for each, turn in zip(both, turns, strict=True):
            places = [places_of(part, each, turn)]
            gap = turn.clean - turn.corrupt
            gained.append(float(estimated_shares(each, turn, places).sum()) * gap)
            if part.patched.count:
                truly.append(float(recovered_shares(each, turn, places)[0, 0]) * gap)
        same(part.estimated, gained)
        if truly:
            same(part.patched, truly)
    heads = [part for part in found.parts if part.head != WHOLE]
    strongest = sorted(heads, key=lambda part: -abs(part.estimated.mean))[:3]
    assert {part for part in heads if part.patched.count} == set(strongest)
    roles = zip(
        *([role for view in trace.attention_views() for role in head_roles(view)] for trace in traces), strict=True
    )
    for part, each in zip(heads, roles, strict=True):
        assert (part.role, Head(part.stack, part.kind, part.layer, part.head)) == (summarise(each).role, each[0].place)


def test_the_reader_chooses_what_is_measured(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("gpt")
    clean, other = pairs_of(checkpoint, "gpt")[0]
    both = contrast(single(checkpoint, clean), other)
    words = [word for word in ("mat", "dog", "the", "on", "is") if len(checkpoint.tokenizer.encode(word)) == 1]
    a, b = words[:2]
    cases, problems = cases_of(checkpoint, [Line(1, clean, other, a, b), Line(2, clean, "", a, b), Line(3, clean)])
    found = prompt_batch(checkpoint, cases)
    ids = [token_of(checkpoint, clean, word) for word in (a, b)]
    turn = replace_turn_tokens(both, both.turns[0], answer=ids[0], other=ids[1])
    logits = single(checkpoint, clean).values("decoder.logits")[turn.row]
    assert not problems and turn.clean == pytest.approx(float(logits[ids[0]] - logits[ids[1]]), abs=1e-5)
    assert max(part.attribution.count for part in found.parts) == 3
    assert found.gap.mean == turn.clean - turn.corrupt and found.gap.count == 1
    part = next(part for part in found.parts if part.patched.count)
    assert found.share(part) == pytest.approx(part.patched.mean / found.gap.mean)
    assert replace_turn_tokens(both, both.turns[0]) is both.turns[0]
    turned = replace_turn_tokens(both, both.turns[0], answer=both.turns[0].other)
    assert (turned.answer, turned.other) == (both.turns[0].other, both.turns[0].answer)


def test_a_blank_and_a_class_are_chosen_by_their_words(tiny_checkpoint: Callable) -> None:
    bert, sentiment = tiny_checkpoint("bert"), tiny_checkpoint("sentiment")
    word = next(word for word in ("cat", "the", "is") if len(bert.tokenizer.encode(word)) == 1)
    assert token_of(bert, "A ___ sat.", word) == bert.tokenizer.encode(word)[0]
    names = sentiment.config.class_names
    assert token_of(sentiment, CLEAN, names[1]) == 1
    _, problems = cases_of(sentiment, [Line(7, CLEAN, "", "awful")])
    assert "Line 7" in str(problems[0]) and "awful" in str(problems[0]) and names[0] in str(problems[0])
    _, problems = cases_of(bert, [Line(1, CLEAN), Line(2, "___ and ___")])
    assert ["this one has 0" in str(problems[0]), "this one has 2" in str(problems[1])] == [True, True]


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [
        ("a.txt", "One.\n\n  Two, too. \n", (Line(1, "One."), Line(3, "Two, too."))),
        ("a.txt", '\ufeffAnswer;CLEAN\nMary;"a; b"\n\n;c\n', (Line(2, "a; b", "", "Mary"), Line(4, "c"))),
        ("a.csv", 'clean,other\na\u2028b,John\n"c\nd",', (Line(2, "a\u2028b", other="John"), Line(4, "c\nd"))),
        ("a.tsv", "clean\tother\na, b\tJohn\r\n", (Line(2, "a, b", "", "", "John"),)),
    ],
)
def test_lines_are_read_in_every_form(name: str, content: str, lines: tuple[Line, ...], tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content.encode())
    assert read_lines(tmp_path / name) == lines


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"clean,corrupted\n\n", "one prompt per line"),
        (b" ", "one prompt per line"),
        ("clean,corrupted\na,b\ncafé,c\n".encode("latin-1"), "utf-8"),
        (b"clean,wrong\na,b\n", "wrong"),
        (b"corrupted,answer\na,b\n", "corrupted, answer"),
        (b"clean,clean\na,b\n", "once"),
        (b"clean,answer\nWhen Mary, too, gave,John\n", "line 2"),
        (b'clean\n"' + b"x" * 200_000 + b'"\n', "field"),
        (b"x" * (MOST_BYTES + 1), "1,000,000 bytes"),
    ],
)
def test_what_is_no_batch_is_refused_in_a_sentence(content: bytes, word: str, tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_bytes(content)
    with pytest.raises(InputError, match=word):
        read_lines(tmp_path / "pairs.csv")
    with pytest.raises(InputError, match="missing"):
        read_lines(tmp_path / "missing.csv")


def test_a_line_that_cannot_be_read_is_named_and_the_others_are_measured(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("gpt")
    clean, other = pairs_of(checkpoint, "gpt")[0]
    lines = [
        Line(1, clean, other),
        Line(2, clean, "The cat."),
        Line(3, clean, clean),
        Line(4, clean, other, "incomprehensibilities"),
        Line(5, "word " * 2_000),
        Line(6, "", other),
        Line(7, clean, other, "the", "the"),
    ]
    cases, problems = cases_of(checkpoint, lines)
    assert [case.line.number for case in cases] == [1]
    says = ("tokens, the clean", "the same", "incomprehensibilities.*tokens", "at most", "is empty", "same token")
    for number, (problem, expected) in enumerate(zip(problems, says, strict=True), start=2):
        assert f"Line {number}" in str(problem) and next(filter(None, lines[number - 1][1:]))[:40] in str(problem)
        assert re.search(expected, str(problem)), problem
    with pytest.raises(InputError, match="no line left"):
        prompt_batch(checkpoint, ())


def test_a_line_that_takes_too_much_memory_is_named(tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer.runs.recording_size.ALWAYS", 0)
    monkeypatch.setattr("transformer.heads.prompt_batch.MOST_MEMORY", 60_000)
    cases, problems = cases_of(tiny_checkpoint("gpt"), [Line(1, "The cat."), Line(2, "The cat sat. " * 8)])
    assert [case.line.number for case in cases] == [1]
    assert "Line 2" in str(problems[0]) and "memory" in str(problems[0])


def test_a_notebook_gets_the_same_as_a_table(tiny_checkpoint: Callable) -> None:
    from glassformer.notebook import batch

    checkpoint = tiny_checkpoint("gpt")
    pairs = pairs_of(checkpoint, "gpt")
    with pytest.warns(UserWarning, match="Line 3"):
        table = batch(checkpoint, [*pairs, ("The cat.", CLEAN)])
    expected = [one["estimated_mean"] for one in measured(checkpoint, pairs).records()]
    assert table["estimated_mean"].tolist() == pytest.approx(expected, abs=1e-6)
