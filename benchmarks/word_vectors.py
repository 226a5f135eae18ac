"""Whether the shipped word vectors are what gensim learns: the share of nearest words that they have in common.

    python -m benchmarks.word_vectors --data DIR

trains gensim twice on the same sentences with the same settings. Two runs of gensim with different seeds differ, too:
that is what can be reached.
"""

import argparse

import numpy as np

from transformer.analysis.neighbours import nearest_rows
from transformer.training.corpora import load_corpus
from transformer.word_vectors.files import load_vectors
from transformer.word_vectors.objectives import OBJECTIVES
from transformer.word_vectors.training import WordRecipe
from transformer.word_vectors.vocabulary import words_of

NEAREST = 10


def nearest_words(words: list[str], table: np.ndarray, asked: list[str]) -> list[set[str]]:
    """The ten nearest words of each word that is asked for."""
    ids = {word: id for id, word in enumerate(words)}
    return [
        {words[found.id] for found in nearest_rows(table, table[ids[word]], count=NEAREST, excluded={ids[word]})}
        for word in asked
    ]


def shared(first: list[set[str]], second: list[set[str]]) -> float:
    """The mean share of nearest words that stand in both lists, 0 … 1."""
    return float(np.mean([len(one & other) / NEAREST for one, other in zip(first, second, strict=True)]))


def main() -> None:
    from gensim.models import Word2Vec

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder that holds the corpora")
    parser.add_argument("--vectors", default="checkpoints/word2vec-en", metavar="DIR")
    options = parser.parse_args()
    ours, recipe = load_vectors(options.vectors), WordRecipe()
    sentences = [words_of(text) for text, *_ in load_corpus("tatoeba-en", options.data).train]
    asked = list(ours.words[50:550])  # the very first have no neighbours of their kind, the rare ones hardly any
    for objective in OBJECTIVES:
        runs = []
        for seed in (1, 2):
            model = Word2Vec(
                sentences,
                vector_size=recipe.width, window=recipe.window, negative=recipe.negatives, min_count=recipe.min_count,
                sample=recipe.subsampling, epochs=recipe.epochs, sg=objective == "skip-gram", workers=1, seed=seed,
            )  # fmt: skip
            runs.append(nearest_words(model.wv.index_to_key, model.wv.vectors, asked))
        own = nearest_words(list(ours.words), ours.tables[objective], asked)
        mine = np.mean([shared(own, run) for run in runs])
        print(f"{objective:<10} ours and gensim {mine:.2f}   gensim and gensim {shared(*runs):.2f}")


if __name__ == "__main__":
    main()
