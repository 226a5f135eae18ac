"""The sections of Embeddings: rows of E, one lookup, neighbours, map, analogies; image patches."""

import numpy as np
import streamlit as st

from charts.canvas.value_map import value_map
from charts.figures.bars import Bars, bars
from charts.figures.embedding_rows import embedding_rows, embedding_window
from charts.figures.gradients import gradient_rows
from charts.figures.vocabulary import vocabulary_projection
from charts.toolkit.axes import Axis
from charts.toolkit.numbers import latex_notation, number
from charts.toolkit.style import escape, three_digits
from charts.toolkit.words import localize, say
from transformer.layers.embedding_lookup import Lookup, embedding_table, lookup, rows_around
from transformer.layers.embedding_space import (
    Neighbour,
    nearest_tokens,
    single_token_analogies,
    vocabulary_labels,
    vocabulary_map,
    word_analogy,
)
from transformer.pictures.vision_transformer import PatchEmbedding
from transformer.runs.next_sentence import is_pair
from ui.page.page import Page
from ui.sections.training_step import loss_in_words, moved_in_words, take_step
from ui.shell import choice
from ui.show.drawings import show_map
from ui.show.figures import show_figure
from ui.words.texts import plain_word

SHOWN_DIMENSIONS = 8
_BESIDE = 8  # nearest rows, drawn beside those that the sentence looks up
_CLOSE = 0.3  # smallest cosine of a row that is called close; in our models, rows below it have no similar uses


def table_of(p: Page) -> np.ndarray:
    """Return E of the stack in focus, [vocabulary, model]."""
    return embedding_table(p.checkpoint, p.focus.stack)


def label(p: Page, id: int) -> str:
    """Return an entry of the vocabulary as it is shown."""
    return p.checkpoint.tokenizer.display(id)


def nearest(p: Page) -> tuple[Neighbour, ...]:
    """Return the rows of E nearest to that of the token in focus."""
    id = p.trace.tokens(p.focus.stack)[p.focus.token].id
    return p.calc(nearest_tokens, p.checkpoint, p.focus.stack, id, name="near", shows=("[0]",))


# ---- rows -----------------------------------------------------------------------------------------------------------


def fetched_rows(p: Page) -> None:
    """Draw the rows of E that the sentence looks up, among their neighbours in E on request."""
    tokens, table = p.trace.tokens(p.focus.stack), table_of(p)
    token, near = tokens[p.focus.token], nearest(p)[:_BESIDE]
    said = p.md("first", token=plain_word(token.display), id=str(token.id), d_model=table.shape[1])
    first = near[0]
    close = "first_nearest" if first.similarity >= _CLOSE else "first_far"
    closest = p.md(close, token=plain_word(label(p, first.id)), cosine=first.similarity)
    st.markdown(said if p.focus.lesson else f"{said} {closest}")  # a lesson asks which row is nearest
    rows, beside = (st.container(), None) if p.focus.lesson else st.columns([13, 7])
    with rows:
        show_figure(
            embedding_rows(table[list(tokens.ids)], tokens=tokens, vocabulary_size=len(table), followed=p.focus.token),
            name="embedding-rows",
            caption=p.md(f"rows_caption{_unscaled(p)}", vocabulary=len(table), d_model=table.shape[1]),
        )
    if beside is not None:
        with beside:
            p.say("nearest_title", token=plain_word(token.display))
            draw_neighbours(p, near, of=token.display, name="nearest-rows", caption=p.md("nearest_caption"))
    if p.toggle("window", key="embeddings window"):
        around = rows_around(tokens.ids, vocabulary=len(table))
        displays = [label(p, row) for row in around]
        figure = embedding_window(table[around], row_ids=around, displays=displays, looked_up=sorted({*tokens.ids}))
        show_figure(figure, name="embedding-window", caption=p.md("window_caption"))


def draw_neighbours(p: Page, found: tuple[Neighbour, ...], *, of: str, name: str, caption: str) -> None:
    """Draw rows of E by their cosine to ``of``."""
    rows = Axis(say("names.token"), [label(p, one.id) for one in found])
    cosines = [one.similarity for one in found]
    across = say("embeddings.measure_to", measure=localize("cosine similarity"), token=escape(of))
    limits = (0, 1) if min(cosines) >= 0 else None
    figure = bars(Bars(cosines), rows=rows, across=across, limits=limits)
    show_figure(figure, name=name, caption=caption)


def _unscaled(p: Page) -> str:
    """Return the suffix of the text keys for models that do not scale the rows of E."""
    return "_unscaled" if getattr(p.checkpoint.model, p.focus.stack).embedding.scale == 1 else ""


# ---- one lookup -----------------------------------------------------------------------------------------------------


def one_lookup(p: Page) -> None:
    """Compute row = one-hot × E, and × √d_model if the model does that, for the token in focus."""
    found: Lookup = p.calc(lookup, p.trace, p.focus.stack, p.focus.token, name="found", shows=(".difference",))
    token, unscaled = p.trace.tokens(p.focus.stack)[p.focus.token], _unscaled(p)
    vocabulary, width = table_of(p).shape
    p.say("lookup", token=token.display, id=str(found.id), difference=found.difference)
    start, end = (
        r"\;\; ".join(latex_notation(three_digits(value)) for value in part) for part in (found.row[:4], found.row[-1:])
    )
    p.formula(
        rf"\begin{{bmatrix}} 0 & \cdots & \underset{{{found.id}}}{{1}} & \cdots & 0 \end{{bmatrix}} \cdot E"
        rf" = \begin{{bmatrix}} {start} \; \cdots \; {end} \end{{bmatrix}}",
        f"lookup_caption{unscaled}",
        vocabulary=vocabulary,
        d_model=width,
        scale=found.scale,
    )
    columns = {"dimension": range(width), "product": found.product, "row": found.row}
    columns |= ({} if unscaled else {"scaled": found.row * found.scale}) | {"recorded": found.recorded}
    shown = range(min(width, SHOWN_DIMENSIONS))
    rows = [{name: values[place] for name, values in columns.items()} for place in shown]
    p.table(rows, name="row-of-e", arithmetic=True)
    p.say(
        f"scale_text.{'unscaled' if unscaled else _positions(p)}",
        probe=found.probe,
        before=np.linalg.norm(found.row),
        after=np.linalg.norm(found.recorded),
        scale=found.scale,
    )
    if found.segment:
        key = "segments" if is_pair(p.trace) else "segment"
        p.say(key, token=token.display, letter=found.segment, length=found.segment_length)


def _positions(p: Page) -> str:
    """Return which positions are added to the rows of E: "sinusoidal", "learned" or "none"."""
    if f"{p.focus.stack}.embedding.position" not in p.trace:
        return "none"
    return "sinusoidal" if p.checkpoint.config.positions == "sinusoidal" else "learned"


# ---- the vocabulary -------------------------------------------------------------------------------------------------


def neighbours(p: Page) -> None:
    """Draw the tokens whose rows have the direction closest to that of the token in focus."""
    token = p.trace.tokens(p.focus.stack)[p.focus.token].display
    p.say("neighbours", token=token)
    caption = p.md("neighbours_caption", count=len(table_of(p)), token=token)
    draw_neighbours(p, nearest(p), of=token, name="nearest-neighbours", caption=caption)


def map_of_vocabulary(p: Page) -> None:
    """Draw all rows of E in the plane of their first two principal components."""
    projection = p.calc(vocabulary_map, p.checkpoint, p.focus.stack, name="projection", shows=(".explained",))
    width = table_of(p).shape[1]
    p.say("map", d_model=width, share=sum(projection.explained), rest=width - 2)
    figure = vocabulary_projection(
        projection.coordinates,
        displays=p.calc(vocabulary_labels, p.checkpoint, p.focus.stack, name="labels"),
        tokens=p.trace.tokens(p.focus.stack),
        explained=projection.explained,
    )
    show_figure(figure, name="vocabulary-map", caption=p.md("map_caption"))


def analogies(p: Page) -> None:
    """Draw the rows nearest to a − b + c, and the rank of the expected word if there is one."""
    p.say("analogies")
    offered = {f"{a} − {b} + {c}": (a, b, c, word) for a, b, c, word in single_token_analogies(p.checkpoint.tokenizer)}
    words: tuple[str, ...] = ("", "", "")
    if offered:
        first, owner = next(iter(offered)), p.checkpoint.fingerprint
        look = {"key": "analogy example", "owner": owner, "pills": True}
        words = offered.get(choice.buttons(p.text["analogy_example"], list(offered), default=first, **look), words)
    asked = []
    with st.container(horizontal=True):
        for name, word in zip("abc", words, strict=False):
            typed = choice.text(p.text[name], default=word, key=f"analogy {name}", owner=words, width=180)
            asked.append(typed.strip())
    if not all(asked):
        return
    for word in asked:
        if len(ids := p.checkpoint.tokenizer.encode(word)) != 1:
            p.say("not_one", small=True, word=word, tokens=len(ids), pieces=" ".join(label(p, id) for id in ids))
            return
    expected = words[3] if len(words) == 4 and asked == list(words[:3]) else ""
    found = p.calc(word_analogy, p.checkpoint, p.focus.stack, tuple(asked), expected, name="found", shows=("",))
    if expected:
        key = "expected_hit" if found.rank == 1 else "expected_miss"
        p.say(key, expected=expected, rank=found.rank, count=found.n_rows)
    of = p.words("analogy_of", a=asked[0], b=asked[1], c=asked[2])
    caption = p.md("analogy_caption", count=len(table_of(p)))
    draw_neighbours(p, found.nearest, of=of, name="analogy", caption=caption)
    if offered:
        _all_analogies(p, offered)


def _all_analogies(p: Page, offered: dict[str, tuple[str, ...]]) -> None:
    """List every example with its nearest row and the rank of the expected word, misses included."""
    rows = []
    for question, (*words, expected) in offered.items():
        found = p.calc(word_analogy, p.checkpoint, p.focus.stack, tuple(words), expected)
        nearest_row = label(p, found.nearest[0].id)
        rows.append({"question": question, "expected": expected, "nearest": nearest_row, "rank": found.rank})
    p.say("all_analogies", hits=sum(row["rank"] == 1 for row in rows), count=len(rows))
    caption = p.md("all_analogies_caption", count=len(table_of(p)) - 3)
    p.table(rows, name="all-analogies", caption=caption)


# ---- one training step ----------------------------------------------------------------------------------------------


def one_training_step(p: Page) -> None:
    """Show which rows of E get a gradient from this sentence, and how far they move."""
    controls = st.container(horizontal=True, vertical_alignment="bottom")
    step = take_step(p, controls, optimizer="sgd")
    moved, how = step.moved, "how_measured"
    if step.by_projection is not None and step.tied:
        ways = {"both": moved, "lookup": step.by_lookup, "projection": step.by_projection}
        with controls:
            way = p.option("way", list(ways), key="training way", help=p.text["way_help"])
        moved, how = ways[way], how if way == "both" else "how_part"
    st.markdown(f"{p.md('training')} {loss_in_words(p, step)}")
    caption = p.md("training_caption", how=p.md(how))
    show_figure(gradient_rows(moved, tokens=step.read), name="training-step", caption=caption)
    st.markdown(moved_in_words(p, step))


# ---- a model that reads images --------------------------------------------------------------------------------------


def patches(p: Page) -> None:
    """Draw the vectors of all patches, one component as a sum of products, and the matrix E."""
    tokens, width = p.trace.tokens(p.focus.stack), p.checkpoint.config.d_model
    vectors, token = p.trace.values("encoder.embedding.token"), tokens[p.focus.token]
    if not (token.special or p.reads_files):
        p.say("first_patch", pixels=len(token.pixels), token=token.display, d_model=width)
    show_map(
        value_map(
            vectors,
            row_labels=tokens.labels,
            column_labels=tuple(map(str, range(width))),
            row_title=p.words("patch"),
            column_title=p.words("dimension"),
            title=p.words("vectors"),
            chosen_row=p.focus.token,
            height=430,
        ),
        key="patch vectors",
    )
    p.say("vectors_caption", small=True, tokens=len(tokens), d_model=width)
    if token.special:
        p.say("class_vector", token=token.display)
    if p.reads_files:
        p.formula(r"x_c = \sum_k E_{c,k}\, p_k + b_c", "file_caption", d_model=width)
        p.say("no_table")
        return
    projection = p.checkpoint.model.encoder.embedding.table.projection
    if not token.special:
        channel = choice.number(p.text["dimension"], 0, width - 1, 0, key="patch channel", width=200)
        weights, bias = projection.weight[channel].tolist(), projection.bias[channel].item()
        pairs = zip(weights, token.pixels, strict=True)
        products = " + ".join(rf"{_bracketed(w)} \cdot {latex_notation(three_digits(x))}" for w, x in pairs)
        p.formula(
            rf"x_{{{channel}}} = \sum_k E_{{{channel},k}}\, p_k + b_{{{channel}}} = {products} + {_bracketed(bias)}"
            rf" = {latex_notation(number(f'{float(vectors[p.focus.token, channel]):.6g}'))}",
            "projection_caption",
            patch=token.display,
            d_model=width,
            pixels=len(token.pixels),
        )
    columns = {f"E[:, {k}]": column for k, column in enumerate(projection.weight.T.tolist())}
    columns["b"] = projection.bias.tolist()
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    p.table(rows, name="patch-projection", height=240)
    p.say("no_table")
    p.calc(p.trace.values, "encoder.embedding.token", name="vectors", shows=(f"[{p.focus.token}]",))
    p.code(PatchEmbedding)


def _bracketed(value: float) -> str:
    written = latex_notation(three_digits(value))
    return f"({written})" if value < 0 else written
