"""The model that fits on one sheet: weights, predictions, attention, and one pass worked out on paper."""

from __future__ import annotations

from math import exp, sqrt

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


def test_the_attends_to_the_word_that_decides_what_follows() -> None:
    assert 0.5 < passed("the cat sat on the")["weights0"][4, 3] < 0.95  # on
    assert 0.5 < passed("the dog saw the")["weights0"][3, 1] < 0.95  # the subject


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


def test_one_pass_worked_out_on_paper() -> None:
    """Compute "the cat" with one head: the row of "cat", from the embedding to the probability of "sat"."""
    # x = 2 · E[word] + P[position]
    the = (2 * 1.4 - 0.5, 2 * 0.5 + 0.0, 2 * 0.0 + 0.1, 2 * -0.5 + 0.0)  # 2.3, 1.0, 0.1, −1.0
    cat = (2 * 1.1 - 0.4, 2 * -1.4 - 1.0, 2 * -1.3 + 0.0, 2 * 0.5 - 0.8)  # 1.8, −3.8, −2.6, 0.2
    # query of "cat"; keys and values of both, zeros in the matrices left out
    q = (0.5 * -3.8, -0.1 * 1.8 - 0.4 * -3.8 - 0.1 * -2.6 - 1.3 * 0.2, -0.1 * 1.8 + 1.0 * 0.2, 0.5 * 1.8 + 0.7 * -2.6)
    k_the = (-0.5 * 0.1, 0.3 * 2.3 - 1.0 * 1.0 + 0.1 * 0.1, 0.5 * 1.0, -0.2 * 0.1 - 1.0 * -1.0)
    k_cat = (-0.5 * -2.6, 0.3 * 1.8 - 1.0 * -3.8 + 0.1 * -2.6, 0.5 * -3.8, -0.2 * -2.6 - 1.0 * 0.2)
    v_the = (0.0, 0.1 * 2.3 + 0.5 * 1.0 + 0.6 * 0.1, -0.8 * 2.3 - 0.2 * 0.1 - 1.0 * -1.0, -0.2 * 1.0)
    v_cat = (0.0, 0.1 * 1.8 + 0.5 * -3.8 + 0.6 * -2.6, -0.8 * 1.8 - 0.2 * -2.6 - 1.0 * 0.2, -0.2 * -3.8)
    # q = (−1.9, 1.34, 0.02, −0.92), k_the = (−0.05, −0.3, 0.5, 0.98), k_cat = (1.3, 4.08, −1.9, 0.32)
    s_the = (-1.9 * -0.05 + 1.34 * -0.3 + 0.02 * 0.5 - 0.92 * 0.98) / 2
    s_cat = (-1.9 * 1.3 + 1.34 * 4.08 + 0.02 * -1.9 - 0.92 * 0.32) / 2
    a_the, a_cat = exp(s_the) / (exp(s_the) + exp(s_cat)), exp(s_cat) / (exp(s_the) + exp(s_cat))
    _, c2, c3, c4 = (a_the * one + a_cat * other for one, other in zip(v_the, v_cat, strict=True))
    out = (0.3 * c2 - 0.2 * c3 - 0.3 * c4, 0.8 * c3, -0.6 * c2 - 0.6 * c3, -0.3 * c2 + 0.3 * c3 + 0.1 * c4)
    # Add & Norm
    r = [x + update for x, update in zip(cat, out, strict=True)]
    mean = (r[0] + r[1] + r[2] + r[3]) / 4
    std = sqrt(((r[0] - mean) ** 2 + (r[1] - mean) ** 2 + (r[2] - mean) ** 2 + (r[3] - mean) ** 2) / 4 + 1e-5)
    y = ((r[0] - mean) / std + 0.1, (r[1] - mean) / std, (r[2] - mean) / std, (r[3] - mean) / std + 0.1)
    # feed-forward
    h1 = max(0, 0.8 * y[0] + 0.1 * y[1] + 0.3)
    h2 = max(0, -0.1 * y[0] - 0.2 * y[1] + 1.5 * y[3])
    h3 = max(0, -0.3 * y[0] - 1.0 * y[1] + 0.3 * y[2] + 0.3 * y[3] + 0.2)
    h4 = max(0, -0.4 * y[0] + 1.2 * y[1] + 1.2 * y[2] - 0.1 * y[3])
    f = (
        -0.9 * h1 - 0.8 * h2 - 0.2 * h3 + 1.5 * h4,
        -0.7 * h1 + 0.5 * h2 + 0.9 * h3,
        -0.1 * h1 + 1.0 * h2 - 0.6 * h3 - 0.7 * h4,
        0.4 * h1 - 0.7 * h2 + 0.2 * h3 - 0.4 * h4 + 0.1,
    )
    s = [before + update for before, update in zip(y, f, strict=True)]
    mean2 = (s[0] + s[1] + s[2] + s[3]) / 4
    std2 = sqrt(((s[0] - mean2) ** 2 + (s[1] - mean2) ** 2 + (s[2] - mean2) ** 2 + (s[3] - mean2) ** 2) / 4 + 1e-5)
    z1, z2, z3, z4 = ((each - mean2) / std2 for each in s)
    z1, z2, z3, z4 = 1.2 * z1 - 0.1, 1.3 * z2 + 0.1, 1.2 * z3 + 0.6, 1.5 * z4
    logits = (
        1.4 * z1 + 0.5 * z2 - 0.5 * z4,
        1.1 * z1 - 1.4 * z2 - 1.3 * z3 + 0.5 * z4,
        0.3 * z1 - 1.1 * z2 + 0.7 * z3 - 0.2 * z4,
        -0.7 * z1 - 0.2 * z2 + 0.2 * z3 + 0.1 * z4,
        -0.2 * z1 + 0.2 * z2 + 0.7 * z3,
        -1.1 * z1 - 0.3 * z3 - 1.5 * z4,
        0.5 * z1 + 0.9 * z2 - 1.0 * z3 + 1.1 * z4,
        -0.2 * z1 - 1.0 * z2 - 0.5 * z3 + 1.2 * z4,
    )
    n = passed("the cat")
    np.testing.assert_allclose(n["x"], [the, cat], atol=1e-12)
    np.testing.assert_allclose(n["Q"][1], q, atol=1e-12)
    np.testing.assert_allclose(n["K"], [k_the, k_cat], atol=1e-12)
    np.testing.assert_allclose(n["V"], [v_the, v_cat], atol=1e-12)
    np.testing.assert_allclose(n["weights0"][1], [a_the, a_cat], atol=1e-12)
    np.testing.assert_allclose(n["out"][1], out, atol=1e-12)
    np.testing.assert_allclose(n["norm1"][1], y, atol=1e-12)
    np.testing.assert_allclose(n["hidden"][1], [h1, h2, h3, h4], atol=1e-12)
    np.testing.assert_allclose(n["norm2"][1], [z1, z2, z3, z4], atol=1e-12)
    np.testing.assert_allclose(n["logits"][1], logits, atol=1e-12)
    assert n["probabilities"][1, 3] == pytest.approx(exp(logits[3]) / sum(map(exp, logits)), abs=1e-12)
    assert round(n["probabilities"][1, 3], 2) == 0.41  # sat
