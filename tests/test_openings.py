"""Every shipped checkpoint does what its ``opening.toml`` claims, and its opening is informative."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import transformer
from tests.shipped import SHIPPED, shipped
from transformer.config import NEXT_SENTENCE
from transformer.files.opening_file import OPENING, PLACE, Example, read_opening
from transformer.heads.opening_checks import complaints
from transformer.runs.next_sentence import next_sentence

TRANSLATORS = ("en-fr", "en-fr-2017", "en-fr-sharp", "t5-small-tasks")


@pytest.mark.slow
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_openings_and_examples_do_what_they_are_shown_for(path: Path) -> None:
    checkpoint, opening = shipped(path.name), read_opening(path)
    assert opening is not None, f"{path.name} needs an {OPENING}"
    wrong = [line for example in opening.examples for line in complaints(checkpoint, example)]
    assert not wrong, "\n".join(wrong)
    assert opening.first.answer and opening.first.looks_at and opening.first.least >= 0.5, "an opening claims something"
    assert opening.first.place.keys() == set(PLACE)
    # The token that is selected first is one of the rows that the text describes.
    assert opening.first.place["token"] in opening.first.looks_at


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_examples_are_said_in_both_languages_and_can_be_told_apart(path: Path) -> None:
    opening = read_opening(path)
    assert opening.name.keys() == {"en", "fr"}
    assert max(map(len, opening.name.values())) <= 28, "the sidebar shows the name whole"
    for language in ("en", "fr"):
        labels = [example.label[language] for example in opening.examples]
        assert len(set(labels)) == len(labels) == len({example.sentence for example in opening.examples})
        assert all(example.shows[language].endswith(".") for example in opening.examples)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_what_is_said_of_a_head_names_the_head_that_is_opened(path: Path) -> None:
    """It also appears on pages without a selected head, where "this head" would refer to nothing."""
    opening = read_opening(path)
    for example in opening.examples:
        for language, layer, head in (("en", "layer", "head"), ("fr", "couche", "tête")):
            said = example.shows[language].lower()
            assert "this head" not in said and "cette tête" not in said
            named = {word: re.findall(rf"{word} (\d+)", said) for word in (layer, head)}
            expected = {layer: "layer", head: "head"}
            if any(named.values()):
                assert named == {word: [str(example.place[name])] for word, name in expected.items()}
    assert all("tête" in opening.first.shows["fr"] and "head" in text for text in [opening.first.shows["en"]])


@pytest.mark.parametrize("path", [path for path in SHIPPED if path.name in TRANSLATORS], ids=lambda path: path.name)
def test_an_opening_of_cross_attention_names_a_row_as_the_map_does_after_the_token_that_it_predicts(path: Path) -> None:
    """The row that reads ·Le bears the label ·chat."""
    checkpoint, first = shipped(path.name), read_opening(path).first
    trace = transformer.trace(checkpoint, first.sentence)
    row, tokens = first.place["token"], trace.tokens("decoder")
    named = [tokens[row + 1].display, first.looks_at[row]]
    told = {"en": ("To predict “{}”, the head attends to “{}”.", "that it translates")}
    told["fr"] = ("Pour prédire «\u00a0{}\u00a0», la tête prête attention à «\u00a0{}\u00a0».", "qu’il traduit")
    for language, (sentence, wrong) in told.items():
        assert first.shows[language].endswith(sentence.format(*(token.strip("·") for token in named)))
        assert wrong not in first.shows[language]


@pytest.fixture
def mine(tiny_checkpoint, tmp_path: Path) -> Path:
    tiny = tiny_checkpoint("translator")
    transformer.save(tmp_path / "mine", tiny.model, tiny.tokenizer, card="# mine\n")
    return tmp_path / "mine"


OPENS = """[name]
en = "Mine"
[opening]
sentence = "The cat sat on the mat."
stack = "decoder"
kind = "cross"
layer = {layer}
head = 0
token = 0
label = {{ en = "Plain" }}
shows = {{ en = "A sentence." }}
"""


def test_a_model_that_does_something_else_is_told(mine: Path) -> None:
    (mine / OPENING).write_text(OPENS.format(layer=1) + 'answer = "Le chat."\nlooks_at = { 0 = "no such", 99 = "x" }\n')
    checkpoint, example = transformer.load(mine), read_opening(mine).first
    answer, peak, beyond = complaints(checkpoint, example)
    assert "not 'Le chat.'" in answer and "not at 'no such' with 0.00 or more" in peak and "row 99 is beyond" in beyond
    (mine / OPENING).write_text(OPENS.format(layer=1) + 'without = "Le chat."\n')
    (turned,) = complaints(checkpoint, read_opening(mine).first)
    assert turned.endswith("without decoder cross layer 1 head 0, not 'Le chat.'")
    (mine / OPENING).write_text(OPENS.format(layer=7))
    assert complaints(checkpoint, read_opening(mine).first) == ("this model has no head 0 in decoder layer 7",)


def test_a_class_that_a_pair_does_not_have_is_told(tiny_checkpoint, tmp_path: Path) -> None:
    bert = tiny_checkpoint("bert")
    right = next_sentence(transformer.trace(bert, "The cat. || A dog.")).name
    (wrong,) = {*NEXT_SENTENCE} - {right}
    for sentence, claimed, found in (
        ("The cat. || A dog.", right, None),
        ("The cat. || A dog.", wrong, f"has the class {right}, not {wrong}"),
        ("The cat.", right, f"has the class None, not {right}"),
    ):
        example = Example(sentence, {"en": "Pair"}, {"en": "A pair."}, next_sentence=claimed)
        assert complaints(bert, example) == (() if found is None else (f"{sentence!r} {found}",))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("= =", "is not valid TOML"),
        ("trained_on = 'reviews'\n" + OPENS.format(layer=1), r"\[trained_on\] must be a text by language"),
        (OPENS.format(layer=1).replace("head = 0\n", ""), r"\[opening\] must say head"),
        (OPENS.format(layer=-1), "layer is -1"),
        (OPENS.format(layer=1).replace('"cross"', '"across"'), "kind is 'across'; choose one of self, cross"),
        (OPENS.format(layer=1).replace('en = "Plain"', 'fr = "Simple"'), "must be a text by language, English first"),
        (OPENS.format(layer=1) + "colour = 1", "nothing is called 'colour'"),
        (
            OPENS.format(layer=1) + '[[example]]\nsentence = "Mine."\nwithout = "x"',
            "without is the output without a head; say its stack, kind, layer and head, too",
        ),
        (OPENS.format(layer=1) + "looks_at = { cat = 'x' }", "looks_at is .*; it must name a token for rows"),
        (OPENS.format(layer=1) + "least = 2", "a weight is between 0 and 1"),
        (OPENS.format(layer=1) + 'next_sentence = "yes"', "next_sentence is 'yes'; choose one of IsNext, NotNext"),
        (OPENS.format(layer=1).split("sentence")[0], "must have a sentence"),
        ("[name]\nen = 'x'", r"\[opening\] is missing"),
        ("#" * 60_000, "has more than 50,000 bytes"),
    ],
)
def test_a_file_with_a_mistake_is_refused_by_name(tmp_path: Path, wrong: str, message: str) -> None:
    (tmp_path / OPENING).write_text(wrong)
    with pytest.raises(ValueError, match=rf"{tmp_path.name}/opening.toml.*{message}"):
        read_opening(tmp_path)


def test_without_a_file_there_is_no_opening(tmp_path: Path) -> None:
    assert read_opening(tmp_path) is None
