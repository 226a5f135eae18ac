"""Corpora are read, or a sentence names what is wrong; the examples made from them are right."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import pytest

from transformer.training.corpora import (
    SOURCES,
    group_references,
    holds_sentence_pairs,
    load_corpus,
    read_pairs,
    read_sentence_pairs,
    read_texts,
)
from transformer.training.joined_pairs import joined_pairs
from transformer.training.pair_corpora import consecutive_lines, cut_texts
from transformer.training.spellings import frequent_words, other_spelling
from transformer.training.text_tasks import BLANK, TEXT_TASKS, load_text_tasks, mixed_counts, one_blank, text_examples


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_bytes(content.encode())
    return folder.parent


FILES = {
    "tatoeba-en-fr/train.tsv": "Go.\tVa !\n\nHi.\tSalut !\r\nGo.\tPars\u2028 !\n",
    "tatoeba-en-fr/dev.tsv": "No.\tNon\x0b.\n",
    "multi30k-en-de/train.en": "A dog.\n\nTwo men.\n",  # an empty line shifts nothing
    "multi30k-en-de/train.de": "Ein Hund.\nEtwas.\nZwei Männer.\n",
    "multi30k-en-de/val.en": "A.\n",
    "multi30k-en-de/val.de": "B.\n",
    "multi30k-en-fr/train.en": "A dog.",
    "multi30k-en-fr/train.fr": "Un chien.",
    "multi30k-en-fr/val.en": "A.",
    "multi30k-en-fr/val.fr": "Un.",
    "sst2/train.tsv": "so good\t1\nso bad\t0\n",
    "sst2/dev.tsv": "fine\t1\n",
}
TRANSLATED, LABELLED = [("Go.", "Va !"), ("Hi.", "Salut !"), ("Go.", "Pars\u2028 !")], [("so good", 1), ("so bad", 0)]
ENGLISH = [("Go.",), ("Hi.",)]
READ = {  # what is asked for: examples for training, and for development
    "tatoeba-en-fr": (TRANSLATED, [("No.", "Non\x0b.")]),
    "tatoeba-en": (ENGLISH, [("No.",)]),
    "multi30k-en-de": ([("A dog.", "Ein Hund."), ("Two men.", "Zwei Männer.")], [("A.", "B.")]),
    "sst2": (LABELLED, [("fine", 1)]),
    "tatoeba-en + sst2": ([*ENGLISH, ("so good",), ("so bad",)], [("No.",), ("fine",)]),
    "tatoeba-en-fr + multi30k-en-fr": (
        [*TRANSLATED, ("A dog.", "Un chien.")],
        [("No.", "Non\x0b."), ("A.", "Un.")],
    ),
}


def test_every_layout_of_a_corpus_is_read_alone_and_joined(tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content.encode())
    found = {name: load_corpus(name, tmp_path) for name in READ}
    assert {name: (corpus.train, corpus.dev) for name, corpus in found.items()} == READ
    both = b"".join((tmp_path / "tatoeba-en-fr" / name).read_bytes() for name in ("train.tsv", "dev.tsv"))
    assert found["tatoeba-en-fr"].digest == found["tatoeba-en"].digest == hashlib.sha256(both).hexdigest()
    assert len({corpus.digest for corpus in found.values()}) == len(READ) - 1, "and every other has its own"
    for language, text in (("de", "B."), ("fr", "Un.")):
        assert read_pairs(tmp_path / f"multi30k-en-{language}" / "val.en") == [("A.", text)]


@pytest.mark.parametrize("name", [*SOURCES, "tatoeba-en"])
def test_a_missing_file_is_named_with_where_to_get_it(name: str, tmp_path: Path) -> None:
    folder = name if name in SOURCES else "tatoeba-en-fr"
    with pytest.raises(FileNotFoundError) as caught:
        load_corpus(name, tmp_path)
    message = str(caught.value)
    assert str(tmp_path / folder) in message
    assert SOURCES[folder] in message
    assert f"point --data at the folder that holds {folder}/" in message


def test_texts_and_references(tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text("Go.\tVa !\nHi.\tSalut !\nGo.\tPars !\n")
    assert read_texts(tmp_path / "test.tsv") == ["Go.", "Hi."]
    pairs = read_pairs(tmp_path / "test.tsv")
    assert group_references(pairs) == (["Go.", "Hi."], [["Va !", "Pars !"], ["Salut !"]])
    with pytest.raises(FileNotFoundError, match=r"nothing.tsv is missing; docs/checkpoints.md"):
        read_pairs(tmp_path / "nothing.tsv")


@pytest.mark.parametrize(
    ("name", "files", "words"),
    [
        ("wmt14", {}, "'wmt14' is unknown.*tatoeba-en"),
        ("multi30k-en-de", {"train__en": "a\nb\n", "train__de": "a\n"}, "train.en has 2 lines but train.de has 1"),
        ("sst2", {"train__tsv": "so good\tpositive\n"}, "train.tsv.*'positive'"),
        ("tatoeba-en-fr", {"train__tsv": "a\tb\n\nno tab\n"}, "train.tsv, line 3"),
        ("tatoeba-en-fr", {"train__tsv": "a\tb\n\none\ttwo\tthree\n"}, "train.tsv, line 3"),
    ],
)
def test_what_is_wrong_is_named(name: str, files: dict[str, str], words: str, tmp_path: Path) -> None:
    write(tmp_path / name, **files)
    with pytest.raises(ValueError, match=words):
        load_corpus(name, tmp_path)


# ---- pairs of sentences ----------------------------------------------------------------------------------------------

SECOND_PLAY = "Now is the winter of our discontent"


def speech(speaker: str, *lines: str) -> str:
    return "\n".join([f"{speaker}:", *lines])


def play(name: str, first: str, n_speeches: int) -> list[str]:
    return [speech(name, first, f"{name} goes on", f"{name} ends")] + [
        speech(name, *(f"{name} {number} {line}" for line in "abc")) for number in range(1, n_speeches)
    ]


@pytest.fixture
def plays(tmp_path: Path) -> Path:
    blocks = [*play("ROMAN", "Before we proceed any further, hear me speak.", 50), speech("ALL", "Speak.")]
    blocks += play("RICHARD", SECOND_PLAY, 50)
    folder = tmp_path / "tinyshakespeare"
    folder.mkdir()
    (folder / "input.txt").write_text("\n\n".join(blocks) + "\n\n")
    return tmp_path


def rows_of(plays: Path) -> dict[str, list[tuple[str, str, str]]]:
    found = consecutive_lines(plays / "tinyshakespeare" / "input.txt")
    return {split: [tuple(row.split("\t")) for row in rows] for split, rows in found.items()}


def test_each_first_line_has_the_next_one_and_a_wrong_one_of_the_same_play(plays: Path) -> None:
    text = (plays / "tinyshakespeare" / "input.txt").read_text()
    for rows in rows_of(plays).values():
        for first, second, label in rows:
            assert (f"{first}\n{second}" in text) == (label == "0"), (first, second)
            assert ("ROMAN" in second) == ("ROMAN" in first or "Before" in first)
        labels = [(first, label) for first, _, label in rows]
        for first in {first for first, _ in labels}:
            assert [labels.count((first, label)) for label in "01"] == [1, 1]


def test_the_splits_are_the_beginning_and_the_end_of_each_play(plays: Path) -> None:
    rows = rows_of(plays)
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


# ---- longer examples, and other spellings ----------------------------------------------------------------------------

PAIRS = [
    ("The cat sleeps.", "Le chat dort."),
    ("I see the cat.", "Je vois le chat."),
    ("He eats with me.", "Il mange avec moi."),
    ("Tom knows he sleeps.", "Tom sait qu'il dort."),
    ("Tom says I sleep.", "Tom dit que je dors."),
    ("Is he here?", "Est-il ici ?"),
]


def test_sentences_are_joined_with_small_letters_and_elision() -> None:
    joined = joined_pairs(PAIRS, 2_000, seed=1)
    assert ("The cat sleeps because he eats with me.", "Le chat dort parce qu'il mange avec moi.") in joined
    assert ("I see the cat, but Tom knows he sleeps.", "Je vois le chat, mais Tom sait qu'il dort.") in joined
    assert ("Tom knows he sleeps and I see the cat.", "Tom sait qu'il dort et je vois le chat.") in joined
    assert ("The cat sleeps. He eats with me.", "Le chat dort. Il mange avec moi.") in joined
    for english, french in joined:
        assert len(english.split()) <= 16
        assert english.endswith(".") and "?" not in english
        assert " i " not in english and " tom " not in french and "parce que il" not in french


def test_a_corpus_without_short_statements_is_refused() -> None:
    with pytest.raises(ValueError, match="none of the 1 pairs is a statement of 2 to 8 words"):
        joined_pairs([("Is he here?", "Est-il ici ?")], 1, seed=1)


@pytest.mark.parametrize(
    ("american", "british"),
    [
        ("My neighbor likes gray.", "My neighbour likes grey."),
        ("Colorful theaters were canceled.", "Colourful theatres were cancelled."),
        ("She realized it.", "She realised it."),
    ],
)
def test_both_directions(american: str, british: str) -> None:
    assert other_spelling(american) == british
    assert other_spelling(british) == american


@pytest.mark.parametrize("text", ["The laboratory in Colorado.", "A humorous moment.", "Nothing changes."])
def test_other_words_stay(text: str) -> None:
    assert other_spelling(text) == text


def test_frequent_words_are_those_after_a_space_in_their_usual_form() -> None:
    texts = ["I'll see the color", "The color of the sea", "Tom sees it"]
    assert frequent_words(texts, 2) == ["the", "color", "colour"]
    assert "ll" not in frequent_words(texts, 20) and "Tom" in frequent_words(texts, 20)


# ---- text-to-text tasks ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """16 translations into French, 4 into German, 1 film review."""
    folder = tmp_path_factory.mktemp("tasks")
    for name in ("tatoeba-en-fr", "multi30k-en-de", "sst2"):
        (folder / name).mkdir()
    french = "".join(f"I see {n} red cats.\tJe vois {n} chats rouges.\n" for n in range(16))
    (folder / "tatoeba-en-fr" / "train.tsv").write_text(french)
    (folder / "tatoeba-en-fr" / "dev.tsv").write_text("Go.\tVa !\nTom sees us.\tTom nous voit.\n")
    for split, count in (("train", 4), ("val", 1)):
        (folder / "multi30k-en-de" / f"{split}.en").write_text("".join(f"A dog, {n} men.\n" for n in range(count)))
        (folder / "multi30k-en-de" / f"{split}.de").write_text("".join(f"Ein Hund, {n}.\n" for n in range(count)))
    for split in ("train", "dev"):
        (folder / "sst2" / f"{split}.tsv").write_text("so good\t1\n")
    return folder


def test_shares_are_those_of_the_paper() -> None:
    """r_m ∝ e_m^(1/T), with all examples of the largest task (Raffel et al. 2020, §3.5.2)."""
    sizes = [1600, 400, 100]
    assert mixed_counts(sizes, 1.0) == sizes
    assert mixed_counts(sizes, 2.0) == [1600, 800, 400]
    assert mixed_counts(sizes, 1e9) == [1600] * 3
    assert mixed_counts([5], 3.0) == [5]


def test_the_mixture_of_small_corpora(mixed: Path) -> None:
    corpus = load_text_tasks(list(TEXT_TASKS), mixed, temperature=2.0)
    tasks = Counter(source.split(": ")[0] for source, _ in corpus.train)
    assert tasks == {
        "translate English to French": 18,  # 20 · √(16 / 20)
        "translate English to German": 9,
        "sentiment": 4,
        "fill": 20,
    }
    assert ("translate English to French: I see 3 red cats.", "Je vois 3 chats rouges.") in corpus.train
    german = Counter(pair for pair in corpus.train if pair[0].startswith("translate English to German: "))
    assert len(german) == 4 and set(german.values()) <= {2, 3}, "all of them before any of them again"
    assert corpus.train.count(("sentiment: so good", "positive")) == 4
    assert corpus.train == load_text_tasks(list(TEXT_TASKS), mixed, temperature=2.0).train
    assert Counter(source.split(": ")[0] for source, _ in corpus.dev) == {
        "translate English to French": 2,
        "translate English to German": 1,
        "sentiment": 1,
        "fill": 2,
    }


def test_a_blank_hides_one_word_which_is_the_answer() -> None:
    text = "Tom's dog, a small one, doesn't bark."
    blanks = {one_blank((text,), draw) for draw in range(60)}
    assert {answer for _, answer in blanks} == {"Tom's", "dog", "a", "small", "one", "doesn't", "bark"}
    for asked, answer in blanks:
        assert asked.count(BLANK) == 1 and asked.replace(BLANK, answer) == text
    assert one_blank((text,), 7) == one_blank((text,), 7)


def test_a_text_of_two_words_has_no_blank() -> None:
    assert one_blank(("Tom sleeps.",), 0) is None
    assert text_examples("fill: ", [("Go.",), ("Tom sees us.",)]) == [
        (f"fill: {asked}", answer) for asked, answer in [one_blank(("Tom sees us.",), 0)]
    ]
