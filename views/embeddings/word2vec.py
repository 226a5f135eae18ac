"""word2vec's vectors compared with the rows of E, on English words that both have."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import streamlit as st

from charts.toolkit.numbers import whole
from charts.toolkit.style import percent_digits
from transformer.layers.embedding_space import Neighbour, analogy, nearest_rows, principal_components
from transformer.text.tokens import Token, TokenSequence
from transformer.word_vectors.vector_files import WordVectors, load_vectors
from transformer.word_vectors.vocabulary import words_of
from transformer.word_vectors.word2vec_objectives import OBJECTIVES
from ui.compute.loading import REPOSITORY
from ui.compute.store import store
from ui.shell.choice import chosen_option
from ui.shell.page import Page
from ui.show.figures import show_figure
from ui.words.texts import as_plain
from views.embeddings.embeddings_view_model import N_NEIGHBOURS, rank_of
from views.embeddings.vocabulary_figures import nearest_neighbours, neighbour_frame, vocabulary_projection

FOLDER: Path = REPOSITORY / "checkpoints" / "word2vec-en"


def word_vectors() -> WordVectors:
    """Return the included word vectors, loaded once."""
    return store.get(FOLDER, "word vectors", lambda: load_vectors(FOLDER))


def chosen_objective(p: Page) -> str:
    """Draw the row of buttons that choose which of the two word2vec methods is compared with E."""
    return chosen_option(
        p.text, "objective", list(OBJECTIVES), key="embeddings objective", help=p.text["objective_help"]
    )


def neighbours(p: Page, objective: str, token: Token) -> None:
    """Draw the words most similar to the focused token's word."""
    vectors = word_vectors()
    word = _word(token.text)
    if word not in vectors.ids:
        _unknown(p, token.text.strip() or token.display)
        return
    table, id = vectors.tables[objective], vectors.ids[word]
    found = nearest_rows(table, table[id], count=N_NEIGHBOURS, excluded={id})
    show_figure(
        nearest_neighbours(neighbour_frame(vectors.words, found), of=word),
        name="word2vec-neighbours",
        caption=p.text["word2vec_caption"].format(count=whole(len(table)), width=table.shape[1]),
    )


def map_of_words(p: Page, objective: str) -> None:
    """Draw all word vectors in the plane of their first two principal components.

    The words of the sentence are marked.
    """
    vectors = word_vectors()
    table = vectors.tables[objective]
    found = [word for word in dict.fromkeys(words_of(p.trace.tokens(p.focus.stack).text)) if word in vectors.ids]
    marked = [Token(index, vectors.ids[word], word, word) for index, word in enumerate(found)]
    projection = store.get(FOLDER, ("map", objective), lambda: principal_components(table))
    show_figure(
        vocabulary_projection(
            projection.coordinates,
            displays=vectors.words,
            tokens=TokenSequence(tuple(marked)),
            explained=projection.explained,
        ),
        name="word2vec-map",
        caption=p.text["word2vec_map_caption"].format(share=percent_digits(sum(projection.explained))),
    )


def analogy_of(p: Page, objective: str, asked: Sequence[str]) -> None:
    """Draw the same analogy with word2vec's vectors."""
    vectors = word_vectors()
    words = [_word(word) for word in asked]
    if unknown := [word for word, known in zip(asked, words, strict=True) if known not in vectors.ids]:
        _unknown(p, unknown[0])
        return
    found = nearest_to_analogy(objective, words)
    show_figure(
        nearest_neighbours(
            neighbour_frame(vectors.words, found[:N_NEIGHBOURS]),
            of=p.text["analogy_of"].format(a=words[0], b=words[1], c=words[2]),
        ),
        name="word2vec-analogy",
        caption=p.text["analogy_caption"].format(count=whole(len(vectors.words))),
    )


def nearest_to_analogy(objective: str, asked: Sequence[str]) -> tuple[Neighbour, ...]:
    """Return all words by similarity to a − b + c."""
    vectors = word_vectors()
    table: np.ndarray = vectors.tables[objective]
    return analogy(table, *(vectors.ids[word] for word in asked), count=len(table))


def rank_of_expected(objective: str, words: Sequence[str]) -> tuple[str, int] | None:
    """Return word2vec's nearest word to a − b + c and the rank of the expected one, if it has all words."""
    vectors, known = word_vectors(), [_word(word) for word in words]
    if any(word not in vectors.ids for word in known):
        return None
    found = nearest_to_analogy(objective, known[:3])
    return vectors.words[found[0].id], rank_of(vectors.ids[known[3]], found)


def _word(text: str) -> str:
    """Return a text in the spelling of word2vec's vocabulary; "" if it is not one whole word."""
    words = words_of(text)
    return words[0] if len(words) == 1 else ""


def _unknown(p: Page, word: str) -> None:
    st.caption(p.text["word2vec_unknown"].format(word=as_plain(word), count=whole(len(word_vectors().words))))
