"""The model that fits on one sheet: weights, predictions, attention, and one pass worked out on paper."""

from __future__ import annotations

import numpy as np
import pytest

from transformer.toy.by_hand import HEAD_COUNTS, MAX_WORDS, PARAMETERS, Sheet, forward_pass, load_sheet, sheet_model

EN = load_sheet().words["en"]


def passed(text: str, sheet: Sheet | None = None) -> dict[str, np.ndarray]:
    sheet = sheet or load_sheet()
    return forward_pass(sheet, [sheet.ids[word] for word in text.split()])


def with_heads(n_heads: int) -> Sheet:
    return load_sheet().edited({}, n_heads=n_heads)


def test_every_weight_has_one_decimal_and_every_parameter_of_the_model_is_on_the_sheet() -> None:
    sheet = load_sheet()
    for name, numbers in sheet.parameters.items():
        np.testing.assert_array_equal(numbers, numbers.round(1), err_msg=name)
        assert np.abs(numbers).max() <= 2, name
    assert {*PARAMETERS.values()} == {name for name, _ in sheet_model(sheet).named_parameters()}
    assert all(len(set(words)) == 8 for words in sheet.words.values())


@pytest.mark.parametrize("n_heads", HEAD_COUNTS)
@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("the cat sat on the", "mat"),
        ("the dog sat on the", "mat"),
        ("the cat saw the", "dog"),
        ("the dog saw the", "cat"),
        ("the cat saw the dog", "."),
        ("the dog sat", "on"),
    ],
)
def test_the_next_word_is_sensible_and_uncertain(text: str, word: str, n_heads: int) -> None:
    probabilities = passed(text, with_heads(n_heads))["probabilities"][-1]
    assert EN[int(probabilities.argmax())] == word
    assert 0.6 < probabilities.max() < 0.95


@pytest.mark.parametrize("animal", ["cat", "dog"])
@pytest.mark.parametrize("verb", ["sat", "saw"])
def test_a_verb_attends_to_its_subject(animal: str, verb: str) -> None:
    for n_heads in HEAD_COUNTS:
        weights = passed(f"the {animal} {verb}", with_heads(n_heads))["weights0"]
        assert 0.6 < weights[2, 1] < 0.95


def test_two_heads_share_the_projections_of_one() -> None:
    one, two = passed("the cat sat on the"), passed("the cat sat on the", with_heads(2))
    for name in ("Q", "K", "V"):
        np.testing.assert_array_equal(one[name], two[name])
    np.testing.assert_allclose(one["products0"], two["products0"] + two["products1"], atol=1e-12)
    assert np.abs(one["context"] - two["context"]).max() > 0.1


def test_a_matrix_is_written_as_in_its_formula() -> None:
    n = passed("the cat sat on the")
    np.testing.assert_allclose(n["Q"], n["x"] @ n["WQ"] + n["bQ"], atol=1e-12)
    np.testing.assert_allclose(n["out"], n["context"] @ n["WO"] + n["bO"], atol=1e-12)
    np.testing.assert_allclose(n["pre"], n["norm1"] @ n["W1"] + n["b1"], atol=1e-12)
    np.testing.assert_allclose(n["logits"], n["norm2"] @ n["E"].T, atol=1e-12)
    np.testing.assert_allclose(n["token"], 2 * n["onehot"] @ n["E"], atol=1e-12)


def test_too_many_words() -> None:
    with pytest.raises(ValueError, match="takes 1 to 5 words, but ids holds 6"):
        forward_pass(load_sheet(), [0] * (MAX_WORDS + 1))


def test_an_edit_leaves_the_stored_sheet_alone() -> None:
    before = load_sheet().parameters["WQ"].copy()
    edited = load_sheet().edited({("WQ", 0, 1): 5.0}, n_heads=1)
    assert edited.parameters["WQ"][0, 1] == 5
    np.testing.assert_array_equal(load_sheet().parameters["WQ"], before)
