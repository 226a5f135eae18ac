"""What the Embeddings page shows about the rows of E, one function for each of its sections."""

import numpy as np
import pandas as pd
import streamlit as st

from charts.toolkit.numbers import in_tex, whole
from charts.toolkit.style import three_digits
from transformer import Checkpoint
from transformer.layers.embedding_space import analogy, nearest_rows, principal_components
from transformer.text.message import N_
from transformer.variants.family_embedding import FamilyEmbedding
from ui.compute.store import store
from ui.shell import choice
from ui.shell.page import Page
from ui.show.figures import show_figure, show_formula, show_table
from ui.words.texts import as_plain, counted
from views.embeddings import word2vec
from views.embeddings.embedding_row_figures import embedding_window
from views.embeddings.frames import N_NEIGHBOURS, neighbour_frame
from views.embeddings.vocabulary_figures import nearest_neighbours, vocabulary_projection

SHOWN_DIMENSIONS = 8
# (a, b, c, expected): a − b + c should be near what is expected. Only those whose words are single tokens are offered.
ANALOGIES = (
    ("his", "he", "she", "her"),
    ("went", "go", "come", "came"),
    ("girls", "girl", "boy", "boys"),
    ("better", "good", "bad", "worse"),
    ("was", "is", "are", "were"),
    ("woman", "man", "boy", "girl"),
    ("Paris", "France", "Japan", "Tokyo"),
    ("elle", "il", "un", "une"),
)


def embedding_table(checkpoint: Checkpoint, stack: str) -> np.ndarray:
    """E of one stack: [vocabulary, model], the model's own memory, not a copy."""
    return getattr(checkpoint.model, stack).embedding.table.weight.detach().numpy()


def _displays(p: Page) -> tuple[str, ...]:
    """How each entry of the vocabulary is shown, by id."""
    ids, display = range(p.checkpoint.config.vocabulary_size), p.checkpoint.tokenizer.display
    return store.get(p.checkpoint, "displays", lambda: tuple(map(display, ids)))


def neighbouring_rows(p: Page) -> None:
    """The fetched rows of E together with the two rows before and after each of them."""
    tokens, table = p.trace.tokens(p.focus.stack), embedding_table(p.checkpoint, p.focus.stack)
    fetched = sorted(set(tokens.ids))
    around = sorted({row for id in fetched for row in range(max(0, id - 2), min(len(table), id + 3))})
    names = _displays(p)
    figure = embedding_window(table[around], row_ids=around, displays=[names[row] for row in around], looked_up=fetched)
    show_figure(figure, name="embedding-window", caption=p.text["window_caption"])


def lookup(p: Page) -> None:
    """Row = one-hot × E, and × √d_model where the model does that, with the numbers of the followed token."""
    token = p.trace.tokens(p.focus.stack)[p.focus.token]
    table = embedding_table(p.checkpoint, p.focus.stack)
    vocabulary, width = table.shape
    one_hot = np.zeros(vocabulary, dtype=np.float32)
    one_hot[token.id] = 1.0
    product, row = one_hot @ table, table[token.id]
    name = f"{p.focus.stack}.embedding.token"
    recorded = p.trace.values(name)[p.focus.token]
    embedding = getattr(p.checkpoint.model, p.focus.stack).embedding
    scale, scaled = embedding.scale, embedding.scale != 1
    difference = three_digits(np.abs(product - row).max())
    st.markdown(p.text["lookup"].format(token=as_plain(token.display), id=token.id, difference=difference))
    start, end = (r"\;\; ".join(in_tex(three_digits(value)) for value in part) for part in (row[:4], row[-1:]))
    place = rf"\underset{{{token.id}}}{{1}}"
    show_formula(
        rf"\begin{{bmatrix}} 0 & \cdots & {place} & \cdots & 0 \end{{bmatrix}} \cdot E"
        rf" = \begin{{bmatrix}} {start} \; \cdots \; {end} \end{{bmatrix}}",
        caption=p.text["lookup_caption" if scaled else "lookup_caption_unscaled"].format(
            vocabulary=whole(vocabulary), width=width, scale=three_digits(scale)
        ),
    )
    show_table(
        pd.DataFrame(
            {
                p.text["dimension"]: range(min(width, SHOWN_DIMENSIONS)),
                N_("one-hot @ E"): product[:SHOWN_DIMENSIONS],
                p.text["row"]: row[:SHOWN_DIMENSIONS],
                **({p.text["scaled"]: row[:SHOWN_DIMENSIONS] * scale} if scaled else {}),
                p.text["recorded"]: recorded[:SHOWN_DIMENSIONS],
            }
        ),
        name="row-of-e",
        arithmetic=True,
    )
    lengths = {"before": np.linalg.norm(row), "after": np.linalg.norm(recorded), "scale": scale}
    added = f"{p.focus.stack}.embedding.position" in p.trace
    said = "scale_text_unscaled" if not scaled else "scale_text" if added else "scale_text_alone"
    if said == "scale_text" and p.checkpoint.config.positions != "sinusoidal":
        said = "scale_text_learned"
    st.markdown(p.text[said].format(name=name, **{key: three_digits(value) for key, value in lengths.items()}))
    if isinstance(embedding, FamilyEmbedding):
        further = [p.text[part] for part in ("segment", "projection", "norm") if getattr(embedding, part) is not None]
        st.markdown(" ".join(further))


def neighbours(p: Page) -> None:
    """The tokens whose rows point the same way as the followed token's."""
    token = p.trace.tokens(p.focus.stack)[p.focus.token]
    table = embedding_table(p.checkpoint, p.focus.stack)
    found = nearest_rows(table, table[token.id], count=N_NEIGHBOURS, excluded={token.id})
    st.markdown(p.text["neighbours"].format(token=as_plain(token.display)))
    objective = word2vec.chosen_objective(p)
    own, beside = st.columns(2)
    with own:
        show_figure(
            nearest_neighbours(neighbour_frame(_displays(p), found), of=token.display),
            name="nearest-neighbours",
            caption=p.text["neighbours_caption"].format(count=whole(len(table)), token=as_plain(token.display)),
        )
    with beside:
        word2vec.neighbours(p, objective, token)


def map_of_vocabulary(p: Page) -> None:
    """All rows of E in the plane of their two main directions."""
    checkpoint, stack = p.checkpoint, p.focus.stack
    projection = store.get(
        checkpoint, ("vocabulary map", stack), lambda: principal_components(embedding_table(checkpoint, stack))
    )
    width = p.checkpoint.config.d_model
    share = three_digits(100 * sum(projection.explained))
    st.markdown(p.text["map"].format(width=width, share=share, rest=width - 2))
    objective = word2vec.chosen_objective(p)
    own, beside = st.columns(2)
    with own:
        show_figure(
            vocabulary_projection(
                projection.coordinates,
                displays=_displays(p),
                tokens=p.trace.tokens(p.focus.stack),
                explained=projection.explained,
            ),
            name="vocabulary-map",
            caption=p.text["map_caption"],
        )
    with beside:
        word2vec.map_of_words(p, objective)


def analogies(p: Page) -> None:
    """a − b + c, with what was to be expected where there is an expectation."""
    text, tokenizer = p.text, p.checkpoint.tokenizer
    st.markdown(text["analogies"])
    offered = {f"{a} − {b} + {c}": words for words in ANALOGIES if _single(p, words) for a, b, c, _ in [words]}
    words: tuple[str, ...] = ("", "", "")
    if offered:
        chosen = choice.buttons(
            text["analogy_example"],
            list(offered),
            default=next(iter(offered)),
            key="analogy example",
            owner=p.checkpoint.fingerprint,
            pills=True,
        )
        words = offered.get(chosen, words)
    asked = []
    with st.container(horizontal=True):
        for name, word in zip("abc", words, strict=False):
            typed = choice.text(text[name], default=word, key=f"analogy {name}", owner=words, width=180)
            asked.append(typed.strip())
    if not all(asked):
        return
    for word in asked:
        if len(ids := tokenizer.encode(word)) != 1:
            pieces = as_plain(" ".join(tokenizer.display(id) for id in ids))
            st.caption(text["not_one"].format(word=as_plain(word), count=counted(len(ids), "token"), pieces=pieces))
            return
    table = embedding_table(p.checkpoint, p.focus.stack)
    found = analogy(table, *(tokenizer.encode(word)[0] for word in asked), count=len(table))
    if len(words) == 4 and asked == list(words[:3]):
        expected = tokenizer.encode(words[3])[0]
        place = 1 + next(rank for rank, neighbour in enumerate(found) if neighbour.id == expected)
        key = "expected_hit" if place == 1 else "expected_miss"
        st.markdown(text[key].format(expected=as_plain(words[3]), place=whole(place), count=whole(len(found))))
    name = text["analogy_of"].format(a=asked[0], b=asked[1], c=asked[2])
    objective = word2vec.chosen_objective(p)
    own, beside = st.columns(2)
    with own:
        show_figure(
            nearest_neighbours(neighbour_frame(_displays(p), found[:N_NEIGHBOURS]), of=name),
            name="analogy",
            caption=text["analogy_caption"].format(count=whole(len(table))),
        )
    with beside:
        word2vec.analogy_of(p, objective, asked)
    if offered:
        _all_analogies(p, table, offered, objective)


def _all_analogies(p: Page, table: np.ndarray, offered: dict[str, tuple[str, ...]], objective: str) -> None:
    """Every ready example with its nearest row and the place of what was expected, misses included."""
    encode, names = p.checkpoint.tokenizer.encode, _displays(p)
    rows = []
    for name, words in offered.items():
        *asked, expected = (encode(word)[0] for word in words)
        found = [neighbour.id for neighbour in analogy(table, *asked, count=len(table))]
        other = word2vec.place_of_expected(objective, words) or (None, None)
        rows.append((name, words[3], names[found[0]], 1 + found.index(expected), *other))
    hits, others = (sum(row[column] == 1 for row in rows) for column in (3, 5))
    st.markdown(p.text["all_analogies"].format(hits=hits, others=others, count=len(rows)))
    columns = [
        p.text[f"column_{name}"]
        for name in ("question", "expected", "nearest", "place", "nearest_word2vec", "place_word2vec")
    ]
    caption = p.text["all_analogies_caption"].format(count=whole(len(table) - 3))
    show_table(pd.DataFrame(rows, columns=columns), name="all-analogies", caption=caption)


def _single(p: Page, words: tuple[str, ...]) -> bool:
    return all(len(p.checkpoint.tokenizer.encode(word)) == 1 for word in words)
