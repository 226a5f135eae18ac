"""The sections of the Embeddings page about the rows of E, one function each."""

import numpy as np
import pandas as pd
import streamlit as st

from charts.toolkit.numbers import latex_notation, whole
from charts.toolkit.style import percent_digits, three_digits
from ui.compute.store import store
from ui.page.page import Page
from ui.shell import choice
from ui.show.figures import show_figure, show_formula, show_snippet, show_table
from ui.words.texts import as_plain, count_text
from views.embeddings.embedding_row_figures import embedding_rows, embedding_window
from views.embeddings.embeddings_view_model import N_NEIGHBOURS, EmbeddingsViewModel, rank_of
from views.embeddings.vocabulary_figures import nearest_neighbours, neighbour_frame, vocabulary_projection

SHOWN_DIMENSIONS = 8
_NEAREST = 8  # rows, in addition to those that the sentence looks up
_CLOSE = 0.3  # smallest cosine of a row that is called close; in our models, rows below it have no similar uses


def _displays(view_model: EmbeddingsViewModel) -> tuple[str, ...]:
    """Return the display form of each vocabulary entry, by id."""
    checkpoint = view_model.checkpoint
    ids, display = range(checkpoint.config.vocabulary_size), checkpoint.tokenizer.display
    return store.get(checkpoint, "displays", lambda: tuple(map(display, ids)))


def _plainly(token: str) -> str:
    """Return a token for a sentence, without the dot that stands for its space."""
    return as_plain(token.removeprefix("·") or token)


def fetched_rows(p: Page, view_model: EmbeddingsViewModel) -> None:
    """Draw the rows of E that the sentence looks up, among their neighbours in E on request."""
    text, tokens, table, token = p.text, view_model.tokens, view_model.table, view_model.focused
    vocabulary, width = table.shape
    nearest = view_model.neighbours[:_NEAREST]
    said = text["first"].format(token=_plainly(token.display), id=token.id, width=width)
    name, cosine = _plainly(_displays(view_model)[nearest[0].id]), nearest[0].similarity
    near = text["first_nearest" if cosine >= _CLOSE else "first_far"].format(token=name, cosine=three_digits(cosine))
    st.markdown(said if p.focus.lesson else f"{said} {near}")
    rows, beside = (st.container(), None) if p.focus.lesson else st.columns([13, 7])
    with rows:
        show_figure(
            embedding_rows(
                table[list(tokens.ids)], tokens=tokens, vocabulary_size=vocabulary, followed=view_model.token
            ),
            name="embedding-rows",
            caption=text["rows_caption" if view_model.is_scaled else "rows_caption_unscaled"].format(
                vocabulary=whole(vocabulary), width=width
            ),
        )
    if beside is not None:  # a lesson asks which row is nearest
        with beside:
            st.markdown(text["nearest_title"].format(token=_plainly(token.display)))
            show_figure(
                nearest_neighbours(neighbour_frame(_displays(view_model), nearest), of=token.display),
                name="nearest-rows",
                caption=text["nearest_caption"],
            )
    if not choice.toggle(text["window"], key="embeddings window"):
        return
    around, names = view_model.window, _displays(view_model)
    displays = [names[row] for row in around]
    figure = embedding_window(table[around], row_ids=around, displays=displays, looked_up=view_model.fetched)
    show_figure(figure, name="embedding-window", caption=text["window_caption"])


def lookup(p: Page, view_model: EmbeddingsViewModel) -> None:
    """Compute row = one-hot × E, and × √d_model if the model does that, for the token in focus."""
    text, token, row, scale = p.text, view_model.focused, view_model.row, view_model.scale
    vocabulary, width = view_model.table.shape
    difference = three_digits(view_model.lookup_difference)
    st.markdown(text["lookup"].format(token=as_plain(token.display), id=token.id, difference=difference))
    start, end = (r"\;\; ".join(latex_notation(three_digits(value)) for value in part) for part in (row[:4], row[-1:]))
    one = rf"\underset{{{token.id}}}{{1}}"
    show_formula(
        rf"\begin{{bmatrix}} 0 & \cdots & {one} & \cdots & 0 \end{{bmatrix}} \cdot E"
        rf" = \begin{{bmatrix}} {start} \; \cdots \; {end} \end{{bmatrix}}",
        caption=text["lookup_caption" if view_model.is_scaled else "lookup_caption_unscaled"].format(
            vocabulary=whole(vocabulary), width=width, scale=three_digits(scale)
        ),
    )
    show_table(
        pd.DataFrame(
            {
                text["dimension"]: range(min(width, SHOWN_DIMENSIONS)),
                "one-hot @ E": view_model.one_hot_product[:SHOWN_DIMENSIONS],
                text["row"]: row[:SHOWN_DIMENSIONS],
                **({text["scaled"]: row[:SHOWN_DIMENSIONS] * scale} if view_model.is_scaled else {}),
                text["recorded"]: view_model.recorded[:SHOWN_DIMENSIONS],
            }
        ),
        name="row-of-e",
        arithmetic=True,
    )
    lengths = {"before": np.linalg.norm(row), "after": np.linalg.norm(view_model.recorded), "scale": scale}
    numbers = {key: three_digits(value) for key, value in lengths.items()}
    key = f"scale_text_{view_model.positions}" if view_model.is_scaled else "scale_text_unscaled"
    st.markdown(text[key].format(name=view_model.probe, **numbers))
    if view_model.later_parts:
        letter, length = view_model.segment
        added = {"token": as_plain(token.display), "letter": letter, "length": three_digits(length)}
        st.markdown(" ".join(text[part].format(**added) for part in view_model.later_parts))


def neighbours(p: Page, view_model: EmbeddingsViewModel) -> None:
    """Draw the tokens whose rows have the direction closest to that of the token in focus."""
    token, count = view_model.focused, whole(len(view_model.table))
    st.markdown(p.text["neighbours"].format(token=as_plain(token.display)))
    show_figure(
        nearest_neighbours(neighbour_frame(_displays(view_model), view_model.neighbours), of=token.display),
        name="nearest-neighbours",
        caption=p.text["neighbours_caption"].format(count=count, token=as_plain(token.display)),
    )


def map_of_vocabulary(p: Page, view_model: EmbeddingsViewModel) -> None:
    """Draw all rows of E in the plane of their first two principal components."""
    projection = store.get(view_model.checkpoint, ("vocabulary map", view_model.stack), view_model.projection)
    width = view_model.table.shape[1]
    share = percent_digits(sum(projection.explained))
    st.markdown(p.text["map"].format(width=width, share=share, rest=width - 2))
    show_figure(
        vocabulary_projection(
            projection.coordinates,
            displays=_displays(view_model),
            tokens=view_model.tokens,
            explained=projection.explained,
        ),
        name="vocabulary-map",
        caption=p.text["map_caption"],
    )


def analogies(p: Page, view_model: EmbeddingsViewModel) -> None:
    """Draw the rows nearest to a − b + c, and the rank of the expected word if there is one."""
    text, offered = p.text, view_model.analogies
    st.markdown(text["analogies"])
    words: tuple[str, ...] = ("", "", "")
    if offered:
        first, owner = next(iter(offered)), view_model.checkpoint.fingerprint
        look = {"key": "analogy example", "owner": owner, "pills": True}
        words = offered.get(choice.buttons(text["analogy_example"], list(offered), default=first, **look), words)
    asked = []
    with st.container(horizontal=True):
        for name, word in zip("abc", words, strict=False):
            typed = choice.text(text[name], default=word, key=f"analogy {name}", owner=words, width=180)
            asked.append(typed.strip())
    if not all(asked):
        return
    for word in asked:
        if len(ids := view_model.token_ids(word)) != 1:
            pieces = as_plain(" ".join(map(view_model.checkpoint.tokenizer.display, ids)))
            st.caption(text["not_one"].format(word=as_plain(word), count=count_text(len(ids), "token"), pieces=pieces))
            return
    found = view_model.analogy(asked)
    if len(words) == 4 and asked == list(words[:3]):
        rank = rank_of(view_model.token_ids(words[3])[0], found)
        key = "expected_hit" if rank == 1 else "expected_miss"
        st.markdown(text[key].format(expected=as_plain(words[3]), rank=whole(rank), count=whole(len(found))))
    name = text["analogy_of"].format(a=asked[0], b=asked[1], c=asked[2])
    show_figure(
        nearest_neighbours(neighbour_frame(_displays(view_model), found[:N_NEIGHBOURS]), of=name),
        name="analogy",
        caption=text["analogy_caption"].format(count=whole(len(view_model.table))),
    )
    if offered:
        _all_analogies(p, view_model)


def _all_analogies(p: Page, view_model: EmbeddingsViewModel) -> None:
    """List every prepared example with its nearest row and the rank of the expected word, misses included."""
    names, rows = _displays(view_model), []
    for name, words in view_model.analogies.items():
        found = view_model.analogy(words[:3])
        rank = rank_of(view_model.token_ids(words[3])[0], found)
        rows.append((name, words[3], names[found[0].id], rank))
    hits = sum(rank == 1 for *_, rank in rows)
    st.markdown(p.text["all_analogies"].format(hits=hits, count=len(rows)))
    columns = [p.text[f"column_{name}"] for name in ("question", "expected", "nearest", "rank")]
    caption = p.text["all_analogies_caption"].format(count=whole(len(view_model.table) - 3))
    show_table(pd.DataFrame(rows, columns=columns), name="all-analogies", caption=caption)


def lookup_snippet(p: Page, view_model: EmbeddingsViewModel) -> None:
    """Show Python that looks up the row by multiplication and by index, and finds its neighbours."""
    stack, token = view_model.stack, view_model.token
    show_snippet(
        "embeddings",
        p.preamble
        + "\nimport torch\nfrom transformer.layers.embedding_space import nearest_rows\n\n"
        + f"embedding = checkpoint.model.{stack}.embedding\n"
        + "E = embedding.table.weight.detach()\n"
        + f"id = trace.tokens({stack!r})[{token}].id\n"
        + "one_hot = torch.zeros(len(E))\none_hot[id] = 1.0\n"
        + "assert torch.equal(one_hot @ E, E[id])\n"
        + f"recorded = trace.values('{view_model.probe}')[{token}]\n"
        + "print((E[id] * embedding.scale - torch.tensor(recorded)).abs().max())\n"
        + "for neighbour in nearest_rows(E.numpy(), E[id].numpy(), excluded={id}):\n"
        + "    print(checkpoint.tokenizer.display(neighbour.id), neighbour.similarity)\n",
    )
