"""word2vec: windows and loss compared with plain loops, training on a small language, its files."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from transformer.__main__ import main
from transformer.errors import CheckpointError
from transformer.layers.embedding_space import nearest_rows
from transformer.word_vectors.vector_files import VECTORS, WORDS, load_vectors, save_vectors
from transformer.word_vectors.vocabulary import Vocabulary, words_of
from transformer.word_vectors.word2vec_objectives import OBJECTIVES, ContinuousBagOfWords, SkipGram, windows
from transformer.word_vectors.word2vec_training import WordRecipe, train_vectors

ANIMALS, FRUITS = ("cat", "dog", "horse", "cow"), ("apple", "pear", "plum", "cherry")
SETTINGS = WordRecipe(
    width=8, window=2, negatives=4, min_count=1, subsampling=1.0, epochs=12, batch_words=64, learning_rate=3e-2
)


def language(n: int = 200) -> list[str]:
    """Animals run and sleep, fruits hang and ripen; otherwise they occur in the same sentences."""
    draw = random.Random(0)
    frames = ((ANIMALS, ("runs", "sleeps", "barks")), (FRUITS, ("hangs", "ripens", "falls")))
    sentences = []
    for _ in range(n):
        nouns, verbs = draw.choice(frames)
        sentences.append(f"The {draw.choice(nouns)} {draw.choice(verbs)} here.")
    return sentences


def test_words_are_lower_case_and_keep_their_apostrophes() -> None:
    assert words_of("Don't <go>, TOM-cat! Été 3") == ["don't", "go", "tom-cat", "été", "3"]
    assert words_of(" … ") == []


def test_the_vocabulary_counts_and_weighs() -> None:
    vocabulary = Vocabulary.of(["b a a", "a b c"], min_count=2)
    assert (vocabulary.words, vocabulary.counts.tolist()) == (("a", "b"), [3, 2])
    assert [ids.tolist() for ids in vocabulary.to_ids(["c a b", "x"])] == [[0, 1], []]
    noise = np.array([3**0.75, 2**0.75])
    np.testing.assert_allclose(vocabulary.noise(), noise / noise.sum())
    ratio = 0.1 / (3 / 5)
    np.testing.assert_allclose(vocabulary.keep_probabilities(0.1)[0], math.sqrt(ratio) + ratio)
    assert vocabulary.keep_probabilities(1.0).tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="no word occurs 9 times; lower min_count"):
        Vocabulary.of(["a"], min_count=9)


def test_windows_hold_the_words_within_reach() -> None:
    sentence, reach = torch.tensor([7, 8, 9, 6]), torch.tensor([1, 2, 2, 1])
    around, present = windows(sentence, reach, 2)
    for i in range(4):
        expected = [int(sentence[j]) for j in range(4) if j != i and abs(i - j) <= reach[i]]
        assert around[i][present[i]].tolist() == expected


def test_both_losses_are_those_of_a_plain_loop() -> None:
    torch.manual_seed(0)
    around, present = windows(torch.tensor([0, 1, 2]), torch.tensor([1, 1, 1]), 1)
    centre, negatives = torch.tensor([0, 1, 2]), torch.randint(0, 5, (3, 2, 3))
    for kind in (SkipGram, ContinuousBagOfWords):
        model = kind(5, 4).double()
        for table in (model.input, model.output):
            torch.nn.init.normal_(table.weight)
        v, u = (table.weight.detach().numpy() for table in (model.input, model.output))

        def one(h: np.ndarray, right: int, wrong: list[int], u: np.ndarray = u) -> float:
            s = [math.log(1 / (1 + math.exp(-u[right] @ h)))] + [math.log(1 / (1 + math.exp(u[n] @ h))) for n in wrong]
            return -sum(s)

        terms = []
        for i in range(3):
            places = [place for place in range(2) if present[i, place]]
            if kind is SkipGram:
                terms += [one(v[i], int(around[i, place]), negatives[i, place].tolist()) for place in places]
            else:
                mean = np.mean([v[int(around[i, place])] for place in places], axis=0)
                terms.append(one(mean, i, negatives[i, 0].tolist()))
        assert model(centre, around, present, negatives).item() == pytest.approx(np.mean(terms), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("objective", list(OBJECTIVES))
def test_words_of_the_same_surroundings_come_together(objective: str) -> None:
    texts = language()
    vocabulary = Vocabulary.of(texts, min_count=1)
    losses: list[float] = []
    table = train_vectors(vocabulary, texts, objective, SETTINGS, lambda epoch, loss: losses.append(loss))
    assert losses[-1] < losses[0]
    for kind in (ANIMALS, FRUITS):
        for word in kind:
            id = vocabulary.words.index(word)
            nouns = [vocabulary.words.index(noun) for noun in (*ANIMALS, *FRUITS) if noun != word]
            nearest = [neighbour.id for neighbour in nearest_rows(table, table[id], count=99, excluded={id})]
            first = [vocabulary.words[other] for other in nearest if other in nouns][:3]
            assert set(first) <= set(kind), (word, first)
    again = train_vectors(vocabulary, texts, objective, SETTINGS)
    np.testing.assert_array_equal(table, again)


def test_the_command_writes_what_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = tmp_path / "data" / "tatoeba-en-fr"
    corpus.mkdir(parents=True)
    for split in ("train", "dev"):
        lines = [f"{text[:-1]} {n}.\tx\n" for n, text in enumerate(language(200))]
        (corpus / f"{split}.tsv").write_text("".join(lines), encoding="utf-8")
    output = tmp_path / "vectors"
    assert main(["word2vec", "--data", str(tmp_path / "data"), "--output", str(output)]) == 0
    vectors = load_vectors(output)
    assert {"the", "here"} <= set(vectors.words) and vectors.ids[vectors.words[1]] == 1
    assert {name: table.shape for name, table in vectors.tables.items()} == dict.fromkeys(
        OBJECTIVES, (len(vectors.words), 100)
    )
    assert f"Vectors of {len(vectors.words)} English words" in (output / "README.md").read_text(encoding="utf-8")
    assert "holds the vectors of" in capsys.readouterr().out


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    vocabulary = Vocabulary(("a", "b"), np.array([2, 1]))
    save_vectors(tmp_path, vocabulary, {name: np.ones((2, 3)) for name in OBJECTIVES})
    (tmp_path / WORDS).write_text("a\n", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"cbow: 2, skip-gram: 2 words, but words.txt has 1 lines"):
        load_vectors(tmp_path)
    (tmp_path / VECTORS).write_bytes(b"x")
    with pytest.raises(CheckpointError, match="is not a complete safetensors file"):
        load_vectors(tmp_path)
    (tmp_path / VECTORS).unlink()
    with pytest.raises(CheckpointError, match="vectors.safetensors is missing"):
        load_vectors(tmp_path)
