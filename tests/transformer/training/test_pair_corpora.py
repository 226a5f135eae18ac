"""Pairs of sentences: consecutive lines and texts cut in two; the splits are apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from transformer.training.corpora import holds_sentence_pairs, read_sentence_pairs
from transformer.training.pair_corpora import consecutive_lines, cut_texts

SECOND_PLAY = "Now is the winter of our discontent"


def speech(speaker: str, *lines: str) -> str:
    return "\n".join([f"{speaker}:", *lines])


def play(name: str, first: str, n_speeches: int) -> list[str]:
    return [speech(name, first, f"{name} goes on", f"{name} ends")] + [
        speech(name, *(f"{name} {number} {line}" for line in "abc")) for number in range(1, n_speeches)
    ]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    blocks = [*play("ROMAN", "Before we proceed any further, hear me speak.", 50), speech("ALL", "Speak.")]
    blocks += play("RICHARD", SECOND_PLAY, 50)
    folder = tmp_path / "tinyshakespeare"
    folder.mkdir()
    (folder / "input.txt").write_text("\n\n".join(blocks) + "\n\n")
    return tmp_path


def rows_of(data: Path) -> dict[str, list[tuple[str, str, str]]]:
    found = consecutive_lines(data / "tinyshakespeare" / "input.txt")
    return {split: [tuple(row.split("\t")) for row in rows] for split, rows in found.items()}


def test_the_right_second_line_follows_in_the_same_speech(data: Path) -> None:
    text = (data / "tinyshakespeare" / "input.txt").read_text()
    for rows in rows_of(data).values():
        for first, second, label in rows:
            assert (f"{first}\n{second}" in text) == (label == "0"), (first, second)


def test_a_wrong_second_line_is_of_the_same_play(data: Path) -> None:
    for rows in rows_of(data).values():
        for first, second, _ in rows:
            assert ("ROMAN" in second) == ("ROMAN" in first or "Before" in first)


def test_half_of_the_rows_are_right_and_each_first_line_has_both_classes(data: Path) -> None:
    for rows in rows_of(data).values():
        labels = [(first, label) for first, _, label in rows]
        for first in {first for first, _ in labels}:
            assert [labels.count((first, label)) for label in "01"] == [1, 1]


def test_the_splits_are_the_beginning_and_the_end_of_each_play(data: Path) -> None:
    rows = rows_of(data)
    right = {split: {row[:2] for row in rows[split] if row[2] == "0"} for split in rows}
    assert {split: len(pairs) for split, pairs in right.items()} == {"train": 180, "dev": 10, "test": 10}
    assert not right["train"] & right["dev"] | right["train"] & right["test"] | right["dev"] & right["test"]
    assert ("RICHARD 49 b", "RICHARD 49 c") in right["test"] and ("ROMAN 49 b", "ROMAN 49 c") in right["test"]
    assert (SECOND_PLAY, "RICHARD goes on") in right["train"]


def test_a_text_is_cut_between_two_sentences_or_between_two_words() -> None:
    texts = [
        "Are you sick? You look pale.",
        "She is drinking a cup of coffee.",
        "I saw Mr. Smith there yesterday.",
        "Go.",
    ]
    rows = [row.split("\t") for row in cut_texts(texts)]
    right = [(first, second) for first, second, label in rows if label == "0"]
    assert right[0] == ("Are you sick?", "You look pale.")
    assert [" ".join(pair) for pair in right] == texts[:3], "the last one is too short"
    assert all(min(len(part.split()) for part in pair) >= 3 for pair in right[1:])
    wrong = [(first, second) for first, second, label in rows if label == "1"]
    seconds = {second for _, second in right}
    assert len(wrong) == 3 and all(second in seconds and pair not in right for pair in wrong for second in pair[1:])
    assert cut_texts(texts) == cut_texts(texts)


def test_a_row_that_is_no_pair_is_named(tmp_path: Path) -> None:
    path = tmp_path / "dev.tsv"
    path.write_text("a\tb\t0\na\tb\t2\n")
    assert holds_sentence_pairs(path)
    with pytest.raises(ValueError, match="line 2: there must be two sentences and 0 or 1, with tabs"):
        read_sentence_pairs(path)
    path.write_text("a\tb\n")
    assert not holds_sentence_pairs(path)
