"""The encodings that are added to tokens: their table, its waves, their similarity, and the sum."""

import numpy as np
import streamlit as st

from charts.toolkit.numbers import latex_notation
from charts.toolkit.style import three_digits
from transformer.layers import positional_encodings
from transformer.runs.next_sentence import is_pair
from ui.shell import choice
from ui.show.figures import show_figure, show_formula
from ui.words.model_terms import embedding_scale
from ui.words.texts import PageText, as_plain
from views.positions.encoding_figures import embedding_sum, encoding_heatmap, encoding_waves, position_similarity
from views.positions.positions_view_model import BACK, LONGEST, SHORTEST, PositionsViewModel


def choose_positions(view_model: PositionsViewModel, text: PageText) -> int:
    """Draw the slider for the number of positions shown, at least those of the sentence."""
    limit = view_model.maximum
    smallest = min(limit, max(SHORTEST, len(view_model.tokens)))
    if smallest == limit:
        return limit
    start = min(limit, max(LONGEST, smallest))
    owner = (limit, smallest)
    return choice.slider(text["shown"], smallest, limit, start, key="positions shown", owner=owner, width=420)


def heatmap(view_model: PositionsViewModel, text: PageText) -> None:
    """Draw the rows that are added to this sentence's tokens; further rows of the table on request."""
    above = st.container()
    tokens, maximum = view_model.tokens, view_model.maximum
    n_rows = min(len(tokens), maximum)
    if n_rows < maximum:
        owner = (maximum, n_rows)
        n_rows = choice.slider(text["shown"], n_rows, maximum, n_rows, key="rows shown", owner=owner, width=420)
    table = view_model.table(n_rows)
    with above:
        show_figure(
            encoding_heatmap(table, tokens=tokens if len(tokens) <= len(table) else None),
            name="positions-heatmap",
            caption=text["heatmap_caption"].format(count=len(table), maximum=maximum),
        )
    _formula(view_model, text)


def waves(view_model: PositionsViewModel, text: PageText) -> None:
    """Draw single columns of the table."""
    above = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        table = view_model.table(choose_positions(view_model, text))
        width = table.shape[1]
        dimensions = choice.several(
            text["dimensions"],
            range(width),
            default=sorted({2 * (width * part // 32) for part in (0, 1, 2, 4, 8)}),
            max_selections=8,
            key="dimensions",
            owner=width,
            help=text["dimensions_help_halves" if view_model.is_in_halves else "dimensions_help"],
        )
    with above:
        show_figure(
            encoding_waves(table, dimensions=sorted(dimensions) or [0], tokens=view_model.tokens),
            name="positions-waves",
            caption=text["waves_caption"],
        )
    _formula(view_model, text, dimension=max(dimensions, default=0))


def similarity(view_model: PositionsViewModel, text: PageText) -> None:
    """Draw the similarity of the encodings of all pairs of positions, and state whether it is symmetric."""
    above = st.container()
    table = view_model.table(choose_positions(view_model, text))
    said = [text["similarity_caption"], text[f"similarity_{view_model.scheme}"]]
    if view_model.scheme == "learned" and (found := view_model.directions(table)):
        position, back, ahead = found
        numbers = {"back": three_digits(back), "ahead": three_digits(ahead)}
        said.append(text["similarity_directions"].format(position=position, distance=BACK, **numbers))
    with above:
        show_figure(
            position_similarity(positional_encodings.similarity(table)),
            name="positions-similarity",
            caption=" ".join(said),
        )
    if (deviation := view_model.shift_deviation(table)) is None:
        return
    st.markdown(text["shift"].format(distance=BACK))
    show_formula(
        r"\begin{pmatrix} PE_{p+k,\,2i} \\ PE_{p+k,\,2i+1} \end{pmatrix} = "
        r"\begin{pmatrix} \cos k\omega_i & \sin k\omega_i \\ -\sin k\omega_i & \cos k\omega_i \end{pmatrix} "
        r"\begin{pmatrix} PE_{p,\,2i} \\ PE_{p,\,2i+1} \end{pmatrix}"
        rf", \qquad \omega_i = 10000^{{-2i/{table.shape[1]}}}",
        caption=text["shift_caption"].format(distance=BACK, count=len(table), deviation=three_digits(deviation)),
    )


def token_plus_position(view_model: PositionsViewModel, text: PageText) -> None:
    """Draw the input of the first layer as a sum."""
    stack, tokens, trace = view_model.stack, view_model.tokens, view_model.trace
    embedding = view_model.checkpoint.model.get_submodule(stack).embedding
    scale = embedding_scale(embedding, view_model.checkpoint.config.d_model)
    token, position, total = (trace.values(f"{stack}.embedding.{part}") for part in ("token", "position", "sum"))
    show_figure(
        embedding_sum(token, position=position, total=total, tokens=tokens, scaled=bool(scale)),
        name="token-plus-position",
        caption=text["sum_caption"].format(scale=scale),
    )
    for part in ("segment", "projection", "norm"):
        if getattr(embedding, part, None) is not None:
            st.markdown(text["sum_segments" if part == "segment" and is_pair(trace) else f"sum_{part}"])
    paper = scale == " × √d_model"
    factor = (
        r"\sqrt{d_{\text{model}}}\, "
        if paper
        else rf"{latex_notation(three_digits(embedding.scale))}\, "
        if scale
        else ""
    )
    lengths = [three_digits(np.linalg.norm(rows[view_model.token])) for rows in (token, position, total)]
    st.markdown(
        text["sum_text"].format(
            token=as_plain(tokens[view_model.token].display),
            position=view_model.token,
            **dict(zip(("token_length", "position_length", "sum_length"), lengths, strict=True)),
        )
    )
    show_formula(
        rf"x_{{\text{{pos}}}} = {factor}E[\text{{id}}_{{\text{{pos}}}}] + PE_{{\text{{pos}}}}"
        + (r" + S_{\text{segment}}" if getattr(embedding, "segment", None) is not None else ""),
        caption=" + ".join([f"{len(tokens)} × {token.shape[1]}"] * 2) + f" = {len(tokens)} × {token.shape[1]}",
    )


def _formula(view_model: PositionsViewModel, text: PageText, *, dimension: int = 0) -> None:
    """Write the formula with the shapes of this sentence and one number computed as an example."""
    tokens, config = view_model.tokens, view_model.checkpoint.config
    width, count = config.d_model, len(tokens)
    if view_model.scheme == "learned":
        caption = text["learned_formula"].format(maximum=config.max_length, width=width, count=count)
        show_formula(r"PE_{\text{pos}} = P[\text{pos}]", caption=caption)
        return
    if view_model.is_in_halves:
        encoding = view_model.checkpoint.model.get_submodule(view_model.stack).embedding.position_encoding
        position = f"(\\text{{pos}} + {encoding.offset})" if encoding.offset else r"\text{pos}"
        angle = rf"\left({position} \cdot 10000^{{-i/{encoding.steps:g}}}\right)"
        show_formula(
            rf"\begin{{aligned}} PE_{{\text{{pos}},\,i}} &= \sin{angle} \\"
            rf" PE_{{\text{{pos}},\,i+{width // 2}}} &= \cos{angle} \end{{aligned}}",
            caption=text["sinusoidal_formula"].format(width=width, count=count),
        )
        return
    show_formula(
        rf"\begin{{aligned}} PE_{{\text{{pos}},\,2i}} &= \sin\left(\text{{pos}} / 10000^{{2i/{width}}}\right) \\"
        rf" PE_{{\text{{pos}},\,2i+1}} &= \cos\left(\text{{pos}} / 10000^{{2i/{width}}}\right) \end{{aligned}}",
        caption=text["sinusoidal_formula"].format(width=width, count=count),
    )
    position = view_model.token or min(1, count - 1)  # at position 0 every sine is 0
    value = positional_encodings.sinusoidal_table(position + 1, width + width % 2)[position, dimension]
    wave, pair = (r"\sin", dimension) if dimension % 2 == 0 else (r"\cos", dimension - 1)
    angle = rf"\left({position} / 10000^{{{pair}/{width}}}\right)"
    show_formula(
        rf"PE_{{{position},\,{dimension}}} = {wave}{angle} = {latex_notation(three_digits(value))}",
        caption=text["sinusoidal_number"].format(
            position=position, token=as_plain(tokens[position].display), dimension=dimension
        ),
    )
