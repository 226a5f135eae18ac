"""The sections of Positions: another order, added encodings, rotation, scores by distance."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from charts.figures.curves import Curve, curves
from charts.figures.heat_maps import FEW, HeatMap, heat_map, heat_maps, token_cell, weight_rows
from charts.toolkit.axes import Axis
from charts.toolkit.numbers import latex_notation
from charts.toolkit.style import exact, lines, percent_digits, three_digits, three_digits_alike
from charts.toolkit.words import localize, say
from transformer import Trace, positions
from transformer.attention import MultiHeadAttention
from transformer.attention_maps.attention_arithmetic import score_rule
from transformer.guests.described_layers import HalvedSinusoids
from transformer.guests.rotary_positions import Rotary, RotaryPositions, plain_rotary
from transformer.heads.sentence_through_training import shared_words
from transformer.interventions import reordering
from transformer.layers import positional_encodings
from transformer.predictions.answer_probabilities import Answer, read_answer
from transformer.runs.next_sentence import is_pair
from transformer.text.tokens import TokenSequence
from ui.page.page import Page
from ui.sections.effects import HARDLY
from ui.shell import choice
from ui.shell.choice import labels
from ui.shell.focus import is_presenting, start_of
from ui.show.chips import Chip, ChipRow, chips
from ui.show.figures import show_figure
from ui.show.score_formula import score_formula
from ui.words.model_terms import embedding_scale
from ui.words.texts import Marked, as_plain, listed, number_text

BACK = 2  # distance in tokens for comparing the two directions and for the linear map
FAR = 32  # distances shown to each side
SHORTEST, LONGEST = 16, 64  # minimum and default of the slider, in positions
ADDED = ("heatmap", "waves", "similarity", "sum", "distance")  # views of a scheme that adds vectors
VIEWS = {"rotary": ("heatmap", "angles", "distance"), "relative": ("bias", "distance"), "alibi": ("distance",)}
VIEWS |= {"none": (), "unknown": ()}
SOURCES = {
    "sinusoidal": (positions.SinusoidalEncoding, positions.sinusoidal_encoding),
    "learned": (positions.LearnedEncoding,),
    "rotary": (positions.RotaryEncoding,),
    "relative": (positions.RelativePositionBias,),
    "alibi": (positions.alibi_slopes,),
}
METHODS = {"yarn": "YaRN, Peng et al. 2023", "llama3": "Llama 3, Grattafiori et al. 2024"}


def scheme_of(p: Page) -> str:
    """Return how the stack in focus encodes positions."""
    return p.checkpoint.config.positions_in(p.focus.stack)


def views_of(p: Page) -> list[str]:
    """Return the views that this scheme has; the page opens on the first, another order where possible."""
    first = ["order"] if reordering.can_reorder(p.checkpoint.config) else []
    return [*first, *VIEWS.get(scheme_of(p), ADDED)]


def needs(p: Page) -> tuple[str, ...]:
    """Return what can be chosen: a token in every view but "order", whose cards are the tokens."""
    views = views_of(p)
    return () if views and p.asked("view", views, key="positions view") == "order" else ("token",)


def choose_view(p: Page) -> str:
    """Draw the choice of the view; return it, or "" for a scheme without any."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        view = ""
        if views := views_of(p):
            view = p.option("view", views, key="positions view", wrap=True, label_visibility=labels())
        if view == "order":
            look = {"in_list": True, "width": 250, "label_visibility": labels()}
            p.option("order", _changes(p), key="order change", **look)
    return view


def names_the_scheme(p: Page, view: str) -> bool:
    """Return whether a view itself says which scheme is the model's."""
    return view == "order" or (view, scheme_of(p)) == ("heatmap", "rotary")


def say_scheme(p: Page) -> None:
    """Say how this stack encodes positions, and what else does."""
    said = [p.md(f"scheme.{scheme_of(p)}")]
    said += [p.md(f"also.{kind}") for kind in p.checkpoint.config.kinds_in(p.focus.stack)[1:]]
    if scheme_of(p) == "rotary" and (without := positional_encodings.rotary_layers(*_layer(p))[2]):
        said.append(p.md("layers_without", layers=_numbers(without)))
    st.caption(" ".join(said))


def code(p: Page) -> None:
    """Show the page as code, with the code of this model's scheme, which may differ from the paper's."""
    stack = p.checkpoint.model.get_submodule(p.focus.stack)
    used = (stack.embedding.position_encoding, stack.layers[0].self_attention.rotary)
    own = [kind for kind in (HalvedSinusoids, RotaryPositions) for part in used if isinstance(part, kind)]
    p.code(*(own or SOURCES.get(scheme_of(p), ())))


def _layer(p: Page) -> tuple:
    """Return the model, the stack in focus, and its layer in focus, or its last one."""
    return p.checkpoint.model, p.focus.stack, min(p.focus.layer, p.trace.n_layers(p.focus.stack) - 1)


def _numbers(places: Sequence[int]) -> str:
    return ", ".join(map(str, places))


def _tokens(p: Page) -> TokenSequence:
    return p.trace.tokens(p.focus.stack)


# ---- another order --------------------------------------------------------------------------------------------------


def _changes(p: Page) -> list[str]:
    changes = ["swap", "shuffle", "reverse", "remove"]
    return [*changes, "remove_all"] if p.checkpoint.config.kind == "encoder-decoder" else changes


def another_order(p: Page) -> None:
    """Show what the model reads, its output before and after, and what one token attends to."""
    before = p.trace
    if p.run.source_pads:
        before = p.trace_of(replace(p.run, source_pads=0))
    if len(reordering.movable(before)) < 2:
        p.say("too_short")
        return
    change, pair = p.asked("order", _changes(p), key="order change"), _pair(p, before)
    shuffle = _shuffle(p) if change == "shuffle" else 0
    order = p.calc(reordering.new_order, before, change, pair=pair, shuffle=shuffle, name="order")
    everywhere = {"everywhere": True} if change == "remove_all" else {}
    after = p.calc(
        reordering.reordered_trace, before, order, **everywhere, name="changed", shows=(".text",), wait="wait.again"
    )
    swapped = pair if change == "swap" else None
    _show_both(p, before, after, order, swapped)
    _show_attention(p, before, after, order, pair)
    for note in (note for note in after.notes if note not in p.trace.notes):  # the page has already shown those
        st.caption(f":material/info: {as_plain(localize(note))}")
    hints = [p.md("swap_hint")] if swapped else []
    if reordering.input_stack(p.checkpoint.config) == "decoder" and order is not None:
        hints.append(p.md("causal_note"))
    if hints:
        st.caption(" ".join(hints))


def _pair(p: Page, before: Trace) -> tuple[int, int]:
    """Return the two tokens to be swapped: a pair of words by default, then those that were clicked."""
    prefix = start_of(p.sentence, p.checkpoint.config.task_prefixes).rstrip()
    found = p.calc(reordering.distant_words, before, prefix, name="pair")
    tokens = reordering.input_tokens(before)
    names = {index: [number_text(index, tokens[index].display)] for index in reordering.movable(before)}
    owner = before.tokens(reordering.input_stack(p.checkpoint.config)).ids
    chosen = tuple(
        choice.read_option(f"swap {name}", names, default, owner=owner)
        for name, default in zip(("first", "second"), found, strict=True)
    )
    return found if chosen == found else chosen


def _shuffle(p: Page) -> int:
    """Draw the button that shuffles again; return the number of the shuffle."""
    count = choice.integer("shuffles") or 0
    st.button(p.text["again"], icon=":material/shuffle:", on_click=choice.put, args=("shuffles", count + 1))
    return count


def _show_both(p: Page, before: Trace, after: Trace, order: Sequence[int] | None, pair: tuple | None) -> None:
    """Say how this model encodes order and what changes; show the tokens and outputs of both orders."""
    answers = read_answer(before), read_answer(after)
    shares = p.calc(reordering.text_probabilities, before, order, name="probabilities_of_the_text")
    with st.container(gap=None):
        config = p.checkpoint.config
        st.markdown(f"#### {p.md(f'scheme.{config.kinds_in(reordering.input_stack(config))[0]}')}")
        if answers[0].parts:
            below = "" if order is None else f" :gray[:small[{p.md('numbers')}]]"
            st.markdown(f"**{_claim(p, answers, shares, order)}**{below}")
        else:
            p.say("no_blank")
    tokens = reordering.input_tokens(before)
    moved = tokens if order is None else sorted(tokens, key=lambda token: order[token.index])
    marked = (
        [token.index in (pair or ()) for token in tokens],
        [order is None or token.index != position for position, token in enumerate(moved)],
    )
    with st.container(gap=None if is_presenting() else "xsmall", key="order answers"):
        for place, (name, row) in enumerate((("before", tokens), ("after", moved))):
            lost = p.words("no_position") if place and order is None else ""
            cards = tuple(
                Chip(token.display, lost or str(position), "marked" if marked[place][position] else "plain")
                for position, token in enumerate(row)
            )
            own = [None if token.special else token.index for token in row]
            # a click on a token makes it one of the two that are swapped
            click = {"on_click": partial(_take, own, pair)} if pair else {}
            chips([ChipRow(p.text[name], cards)], key=f"order tokens {name}", **click)
            if shares is not None:
                st.markdown(f"#### {p.md('text_share', probability=percent_digits(shares[place]))}")
                continue
            own_answer, other = answers[place], answers[1 - place]
            sure = p.md("sure", probability=own_answer.probability) if own_answer.parts else ""
            st.markdown(f"#### → {_written(own_answer, other)} :small[:gray[{sure}]]")


def _claim(p: Page, answers: tuple[Answer, Answer], shares: tuple | None, order: Sequence[int] | None) -> Marked:
    """Say what the new positions change: the output, or how probable it is."""
    told = "without" if order is None else "order"
    if shares is None and answers[0].text != answers[1].text:
        return p.md(f"claim.{told}_changed")
    before, after = shares or [answer.probability for answer in answers]
    written = three_digits_alike([before, after])
    what = "text" if shares else "same"
    equal = written[0] == written[1] or abs(after - before) <= HARDLY * before
    how = "equal" if equal else "less" if after < before else "more"
    return p.md(f"claim.{told}_{what}_{how}", before=written[0], after=written[1])


def _written(answer: Answer, other: Answer) -> Marked:
    """Return an output as Markdown, words that the other output lacks in colour."""
    texts = [" ".join(one.text.split()) or " ".join(part.display for part in one.parts) for one in (answer, other)]
    pieces = []
    for piece, shared in shared_words(*texts):
        word = piece.lstrip()
        pieces.append(Marked(piece[: len(piece) - len(word)]))
        pieces.append(Marked(as_plain(word) if shared else f":orange[{as_plain(word)}]"))
    return Marked(listed(pieces, "").strip() or "–")


def _take(movable: Sequence[int | None], pair: tuple[int, int], _row: int, card: int) -> None:
    """Swap the clicked token with the one that was clicked before it, the second of ``pair``."""
    token = movable[card]
    if token is not None and token not in pair:
        choice.put("swap first", pair[1])
        choice.put("swap second", token)


def _show_attention(p: Page, before: Trace, after: Trace, order: Sequence[int] | None, pair: tuple[int, int]) -> None:
    """Draw the attention of one token in the first layer, before and after, in the head that changes most."""
    # with a causal mask, the later of the two attends to more tokens
    followed = (max if reordering.input_stack(p.checkpoint.config) == "decoder" else min)(pair)
    found = p.calc(reordering.attention_change, before, after, followed, name="attention", shows=(".head",))
    tokens = reordering.input_tokens(before)[: len(found.before)]
    name, new = tokens[followed].display, order or range(len(tokens))
    p.say("attends_without" if order is None else "attends", token=name, head=str(found.head))
    own = [
        str(token.index) if new[token.index] == token.index else f"{token.index} → {new[token.index]}"
        for token in tokens
    ]
    rows = [
        p.words("row_before", position=str(followed)),
        p.words("row_after_none" if order is None else "row_after", position=str(new[followed])),
    ]
    kept = order is None or len(tokens) > FEW  # then the figure has no positions below the tokens
    show_figure(
        weight_rows(
            [found.before, found.after], rows=rows, columns=[token.display for token in tokens], below=own,
            value=p.words("attends_bar"),
        ),
        name="looks-before-and-after",
        caption=p.md("attends_caption" if kept else "attends_caption_moved"),
        alt=p.words("attends_alt", token=name),
    )  # fmt: skip


# ---- what is added --------------------------------------------------------------------------------------------------


def heatmap(p: Page) -> None:
    """Draw the rows that are added to this sentence's tokens; further rows of the table on request."""
    if scheme_of(p) == "rotary":
        _two_heatmaps(p)
        return
    above, tokens, most = st.container(), _tokens(p), p.checkpoint.config.max_length
    n_rows = min(len(tokens), most)
    if n_rows < most:
        more = {"key": "rows shown", "owner": (most, n_rows), "width": 420}
        n_rows = choice.slider(p.text["shown"], n_rows, most, n_rows, **more)
    table = _table(p, n_rows)
    with above:
        caption = p.md("heatmap_caption", count=len(table), maximum=most)
        _draw_table(p, table, name="positions-heatmap", caption=caption)
    _formula(p)


def _table(p: Page, count: int) -> np.ndarray:
    """Return the rows that are added to tokens: [position, model]."""
    return p.calc(
        positional_encodings.added_encoding, p.checkpoint.model, p.focus.stack, count, name="table", shows=("",)
    )


def _draw_table(p: Page, table: np.ndarray, *, name: str, caption: str = "", channels: bool = False) -> None:
    """Draw a table, position × dimension; of more rows than the sentence has tokens, a line marks its end."""
    tokens, title = _tokens(p), say("positions.position_axis")
    named, end = [], None
    if len(tokens) == len(table):
        named = [f"{token.display}  {place}" for place, token in enumerate(tokens)]
    elif len(tokens) < len(table):
        end = len(tokens), say("positions.input_end", n=len(tokens))
    dimensions = "positions.rotated_channels" if channels else "dimension_axis"
    hover = lines(say("positions.numbered_position", place="%{y}"), say("dimension", dimension="%{x}"))
    figure = heat_map(
        table, rows=Axis(title, named), columns=Axis(say(dimensions, n=table.shape[1])), hover=hover,
        value=say("names.value"), height=min(400, max(300, 30 * len(table) + 130)), gap=2 * bool(named), end=end,
    )  # fmt: skip
    show_figure(figure, name=name, caption=caption)


def _choose_positions(p: Page) -> int:
    """Draw the slider for the number of positions shown, at least those of the sentence."""
    limit = p.checkpoint.config.max_length
    smallest = min(limit, max(SHORTEST, len(_tokens(p))))
    if smallest == limit:
        return limit
    more = {"key": "positions shown", "owner": (limit, smallest), "width": 420}
    return choice.slider(p.text["shown"], smallest, limit, min(limit, max(LONGEST, smallest)), **more)


def waves(p: Page) -> None:
    """Draw single columns of the table."""
    above, tokens = st.container(), _tokens(p).tokens
    with st.container(horizontal=True, vertical_alignment="bottom"):
        table = _table(p, _choose_positions(p))
        width = table.shape[1]
        chosen = choice.several(
            p.text["dimensions"], range(width), default=sorted({2 * (width * part // 32) for part in (0, 1, 2, 4, 8)}),
            max_selections=8, key="dimensions", owner=width,
            help=p.text["dimensions_help_halves" if _is_in_halves(p) else "dimensions_help"],
        )  # fmt: skip
    place, value = "%{x}", exact("y")
    drawn = [
        Curve(
            say("dimension", dimension=dimension),
            table[:, dimension],
            (say("positions.position_dimension", place=place, dimension=dimension), value),
            points=[token.display for token in tokens[: len(table)]],
            points_hover=(
                say("positions.token_position_dimension", token="%{text}", place=place, dimension=dimension),
                value,
            ),
        )
        for dimension in sorted(chosen) or [0]
    ]
    across, axis = say("positions.position_axis_dots"), {"range": [-0.5, len(table) - 0.5], "zeroline": False}
    figure = curves(
        drawn, x=range(len(table)), across=across, up=say("positions.encoding_value"), height=380, xaxis=axis
    )
    with above:
        show_figure(figure, name="positions-waves", caption=p.md("waves_caption"))
    _formula(p, dimension=max(chosen, default=0))


def similarity(p: Page) -> None:
    """Draw the similarity of the encodings of all pairs of positions, and state whether it is symmetric."""
    above, table, scheme = st.container(), _table(p, _choose_positions(p)), scheme_of(p)
    said = [p.md("similarity_caption"), p.md(f"similarity_{scheme}")]
    if scheme == "learned" and len(table) > 2 * BACK:
        position = min(max(p.focus.token, BACK), len(table) - 1 - BACK)
        arguments = table, position, BACK
        back, ahead = p.calc(positional_encodings.cosines_around, *arguments, name="back_and_ahead", shows=("",))
        said.append(p.md("similarity_directions", position=str(position), distance=BACK, back=back, ahead=ahead))
    cosines = p.calc(positional_encodings.similarity, table, name="cosines")
    axis, value = Axis(say("positions.position")), localize("cosine similarity")
    figure = heat_map(
        cosines, rows=axis, columns=axis, hover=lines(say("positions.positions", first="%{y}", second="%{x}"), value),
        value=value, height=470, limit=1.0, is_square=True,  # fits on the first screen, even below a lesson's bar
    )  # fmt: skip
    with above:
        show_figure(figure, name="positions-similarity", caption=" ".join(said))
    if scheme != "sinusoidal" or _is_in_halves(p) or table.shape[1] % 2 or len(table) <= BACK:
        return
    deviation = p.calc(positional_encodings.shift_deviation, table, -BACK, name="deviation", shows=("",))
    p.say("shift", distance=BACK)
    p.formula(
        r"\begin{pmatrix} PE_{p+k,\,2i} \\ PE_{p+k,\,2i+1} \end{pmatrix} = "
        r"\begin{pmatrix} \cos k\omega_i & \sin k\omega_i \\ -\sin k\omega_i & \cos k\omega_i \end{pmatrix} "
        r"\begin{pmatrix} PE_{p,\,2i} \\ PE_{p,\,2i+1} \end{pmatrix}"
        rf", \qquad \omega_i = 10000^{{-2i/{table.shape[1]}}}",
        "shift_caption",
        distance=BACK,
        count=len(table),
        deviation=deviation,
    )


def token_plus_position(p: Page) -> None:
    """Draw the input of the first layer as a sum."""
    stack, tokens, embedding = p.focus.stack, _tokens(p), p.checkpoint.model.get_submodule(p.focus.stack).embedding
    scale = embedding_scale(embedding, p.checkpoint.config.d_model)
    parts = [
        p.calc(p.trace.values, f"{stack}.embedding.{part}", name=part, shows=(f"[{p.focus.token}]",))
        for part in ("token", "position", "sum")
    ]
    looked_up = say("positions.scaled_embedding") if scale else say("positions.token_embedding")
    names = looked_up, say("positions.plus_position"), say("positions.equals_sum")
    (n_tokens, width), value = parts[0].shape, say("positions.value_axis")
    figure = heat_maps(
        [HeatMap(name, part, token_cell(), value) for name, part in zip(names, parts, strict=True)],
        rows=Axis(say("names.token"), tokens.displays), columns=Axis(say("dimension_axis", n=width)),
        shared=True,
    )  # fmt: skip
    show_figure(figure, name="token-plus-position", caption=p.md("sum_caption", scale=scale))
    for part in ("segment", "projection", "norm"):
        if getattr(embedding, part, None) is not None:
            p.say("sum_segments" if part == "segment" and is_pair(p.trace) else f"sum_{part}")
    lengths = [np.linalg.norm(rows[p.focus.token]) for rows in parts]
    named = dict(zip(("token_length", "position_length", "sum_length"), lengths, strict=True))
    p.say("sum_text", token=tokens[p.focus.token].display, position=str(p.focus.token), **named)
    factor = "" if not scale else rf"{latex_notation(three_digits(embedding.scale))}\, "
    factor = r"\sqrt{d_{\text{model}}}\, " if scale == " × √d_model" else factor
    segment = r" + S_{\text{segment}}" if embedding.segment is not None else ""
    p.formula(
        rf"x_{{\text{{pos}}}} = {factor}E[\text{{id}}_{{\text{{pos}}}}] + PE_{{\text{{pos}}}}{segment}",
        "sum_formula", count=n_tokens, width=width,
    )  # fmt: skip


def _is_in_halves(p: Page) -> bool:
    """Return whether all sines precede all cosines (Marian, M2M100) instead of alternating with them."""
    return isinstance(p.checkpoint.model.get_submodule(p.focus.stack).embedding.position_encoding, HalvedSinusoids)


def _formula(p: Page, *, dimension: int = 0) -> None:
    """Write the formula with the shapes of this sentence and one number computed as an example."""
    tokens, config, width = _tokens(p), p.checkpoint.config, p.checkpoint.config.d_model
    shapes = {"maximum": config.max_length, "width": width, "count": len(tokens)}
    if scheme_of(p) == "learned":
        p.formula(r"PE_{\text{pos}} = P[\text{pos}]", "learned_formula", **shapes)
        return
    names, angle = (r"2i", r"2i+1"), rf"\left(\text{{pos}} / 10000^{{2i/{width}}}\right)"
    if _is_in_halves(p):
        encoding = p.checkpoint.model.get_submodule(p.focus.stack).embedding.position_encoding
        position = f"(\\text{{pos}} + {encoding.offset})" if encoding.offset else r"\text{pos}"
        names, angle = ("i", f"i+{width // 2}"), rf"\left({position} \cdot 10000^{{-i/{encoding.steps:g}}}\right)"
    p.formula(
        rf"\begin{{aligned}} PE_{{\text{{pos}},\,{names[0]}}} &= \sin{angle} \\"
        rf" PE_{{\text{{pos}},\,{names[1]}}} &= \cos{angle} \end{{aligned}}",
        "sinusoidal_formula",
        **shapes,
    )
    if _is_in_halves(p):
        return
    position = p.focus.token or min(1, len(tokens) - 1)  # at position 0 every sine is 0
    value = positional_encodings.sinusoidal_table(position + 1, width + width % 2)[position, dimension]
    wave, pair = (r"\sin", dimension) if dimension % 2 == 0 else (r"\cos", dimension - 1)
    p.formula(
        rf"PE_{{{position},\,{dimension}}} = {wave}\left({position} / 10000^{{{pair}/{width}}}\right)"
        rf" = {latex_notation(three_digits(value))}",
        "sinusoidal_number", position=str(position), token=tokens[position].display, dimension=str(dimension),
    )  # fmt: skip


# ---- rotation -------------------------------------------------------------------------------------------------------


def _rotary(p: Page) -> Rotary:
    """Return the rotation of the heads of the layer in focus."""
    _, stack, layer = _layer(p)
    python = f"rotary_of(checkpoint.model.{stack}.layers[{layer}].self_attention)"
    imports = "from transformer.layers.positional_encodings import rotary_of"
    return p.known(positional_encodings.rotary_of(_attention(p)), python, imports=imports)


def _attention(p: Page) -> MultiHeadAttention:
    model, stack, layer = _layer(p)
    return model.get_submodule(stack).layers[layer].self_attention


def _two_heatmaps(p: Page) -> None:
    """Draw the sinusoids of Vaswani et al. next to the angles by which this model rotates its heads."""
    config, rotary, tokens = p.checkpoint.config, _rotary(p), _tokens(p)
    if not rotary.n_turned:
        p.say("scheme.none", small=True)
        return
    added, turned = st.columns([3, 2])
    with added:
        p.say("both_added")
        width = config.d_model + config.d_model % 2
        table = p.calc(positional_encodings.sinusoidal_table, len(tokens), width, name="sines_and_cosines")
        _draw_table(p, table, name="positions-heatmap")
    with turned:
        p.say("both_turned")
        table = p.calc(positional_encodings.rotary_table, rotary, len(tokens), name="table", shows=("",))
        _draw_table(p, table, name="rotary-heatmap", channels=True)
    position = p.focus.token
    turns = positional_encodings.angles_of(rotary, len(tokens), n_positions=len(tokens))[position]
    middle = len(turns) // 2
    p.say(
        "both_token", token=tokens[position].display, position=str(position), first=turns[0], middle=str(middle),
        second=turns[middle],
    )  # fmt: skip
    p.say("both_caption", small=True, dimensions=config.d_model, turned=rotary.n_turned, head=config.d_head)


def angles(p: Page) -> None:
    """Draw the effect of the rotation on the agreement between two tokens, by distance."""
    rotary, n_tokens = _rotary(p), len(_tokens(p))
    half = rotary.n_turned // 2
    if not half:
        p.say("scheme.none", small=True)
        return
    n_distances = min(p.checkpoint.config.max_length, max(LONGEST, n_tokens))
    arguments = {"n_positions": n_tokens, "name": "angles", "shows": ("[1]",)}
    turns = p.calc(positional_encodings.angles_of, rotary, n_distances, **arguments)
    drawn = [
        Curve(
            say("positions.channels", first=pair, second=pair + half),
            np.cos(turns[:, pair]),
            (
                say("positions.distance_pair", distance="%{x}", pair=pair),
                say("positions.angle_rad", angle=exact("customdata")),
                say("positions.cosine", value=exact("y")),
            ),
            detail=turns[:, pair].astype(np.float32),
        )
        for pair in sorted({min(half - 1, round(part * (half - 1) / 5)) for part in range(6)})
    ]
    across, axis = say("positions.distance_between_two_tokens"), {"range": [-1.05, 1.05]}
    figure = curves(drawn, x=range(n_distances), across=across, up=say("positions.angle_cosine"), yaxis=axis)
    frequencies = rotary.frequencies(n_tokens)
    caption = p.md("angles_caption", first=float(frequencies[0]), last=float(frequencies[-1]))
    show_figure(figure, name="rotary-angles", caption=caption)
    same, others, _ = positional_encodings.rotary_layers(*_layer(p))
    more = [p.md("rotary_others", same=_numbers(same), others=_numbers(others))] if others else []
    if rotary == plain_rotary(p.checkpoint.config.d_head):
        said = [p.md("rotary_formula", head=p.checkpoint.config.d_head), p.md("rotary_layouts"), *more]
        st.latex(rf"\theta_i = 10000^{{-2i/d_k}}, \qquad {_agreement()}")
    else:
        said = [*_own_rotation(p, rotary, n_tokens), *more]
        thetas = rf"\theta_i = {rotary.base:g}^{{-2i/{rotary.n_turned}}}"
        thetas += r", \qquad \theta'_i = \theta_i / \lambda_i" if rotary.is_stretched else ""
        agreement = _agreement("" if rotary.attention_factor == 1 else "a")
        st.latex(rf"\begin{{gathered}} {thetas} \\[4pt] {agreement} \end{{gathered}}")
    st.caption(" ".join(said), text_alignment="center")


def _agreement(factor: str = "") -> str:
    square = rf"{factor}^2\, " if factor else ""
    return rf"\langle {factor}R_m q,\, {factor}R_n k \rangle = {square}\langle R_{{m-n}}\, q,\, k \rangle"


def _own_rotation(p: Page, rotary: Rotary, n_tokens: int) -> list[str]:
    """Describe a rotation that is not the paper's: its channels, its layout, its speeds."""
    pairs = "(2i, 2i + 1)" if rotary.neighbours else f"(i, i + {rotary.n_turned}/2)"
    sizes = {"turned": rotary.n_turned, "head": _attention(p).d_head, "layer": str(_layer(p)[2])}
    said = [p.md("rotary_own", **sizes, pairs=pairs)]
    said.append(p.md("rotary_layouts_neighbours" if rotary.neighbours else "rotary_layouts"))
    if rotary.is_stretched:
        said.append(_stretching(p, rotary, n_tokens))
    if (factor := rotary.attention_factor) != 1:
        said.append(p.md("rotary_factor", factor=float(factor), square=float(factor**2)))
    return said


def _stretching(p: Page, rotary: Rotary, n_tokens: int) -> Marked:
    """Return how much slower than θ each pair rotates, λ, and by which method, as a sentence."""
    slower = rotary.slowing(n_tokens)
    least, most = float(slower.min()), float(slower.max())
    if rotary.long_thetas:
        key = "rotary_longrope_long" if n_tokens > rotary.original_length else "rotary_longrope_short"
        return p.md(key, least=least, most=most, length=rotary.original_length, count=n_tokens)
    if three_digits(least) == three_digits(most):
        return p.md("rotary_linear", factor=most)
    if rotary.way not in METHODS:
        return p.md("rotary_factors", least=least, most=most)
    kept, slowed, between = positional_encodings.stretched_pairs(rotary, n_tokens)
    return p.md(
        "rotary_by_parts", way=METHODS[rotary.way], pairs=rotary.n_turned // 2, kept=kept, slowed=slowed,
        between=between, factor=most,
    )  # fmt: skip


# ---- scores by distance ---------------------------------------------------------------------------------------------


def _by_distance(values: np.ndarray, distances: np.ndarray, *, name: str, caption: str, alt: str = "") -> None:
    """Draw what each head adds to a score at each distance, before the softmax: one curve per head."""
    drawn = [
        Curve(
            say("names.numbered_head", head=head),
            curve,
            (
                say("positions.head_distance", head=head, distance="%{x}"),
                say("positions.adds_to_score", value=exact("y")),
            ),
            marker=5,
        )
        for head, curve in enumerate(values)
    ]
    figure = curves(drawn, x=distances, across=say("positions.distance_axis"), up=say("positions.added_axis"))
    show_figure(figure, name=name, caption=caption, alt=alt)


def bias(p: Page) -> None:
    """Draw what each head adds to the score of a key at each distance."""
    stack, heads, n_tokens = p.focus.stack, p.checkpoint.config.heads_in(p.focus.stack), len(_tokens(p))
    values, distances = p.calc(
        positional_encodings.relative_bias, p.checkpoint.model, stack, FAR, name="bias_and_distances", shows=("[0]",)
    )
    caption = p.md("bias_caption" if values.any() else "bias_zero")
    _by_distance(values, distances, name="relative-bias", caption=caption)
    product = score_formula(score_rule(p.checkpoint, stack, 0, "self"), r"q_i \cdot k_j", root="d_k")
    latex = rf"s_{{ij}} = {product} + b_{{\text{{head}}}}(j - i)"
    p.formula(latex, "relative_formula", heads=heads, count=n_tokens)


def by_distance(p: Page) -> None:
    """Draw what positions add to the scores of the first layer; for ALiBi, write its formula below."""
    stack, tokens = p.focus.stack, _tokens(p)
    words = tuple(token.id for token in tokens if not token.special) or tokens.ids
    count = min(LONGEST, p.checkpoint.config.max_length)
    values, distances = p.calc(
        positional_encodings.measured_position_scores, p.checkpoint, words, stack=stack, n_positions=count,
        name="scores_and_distances", shows=("[0]",),
    )  # fmt: skip
    caption = p.md("distance_measured", count=count, texts=positional_encodings.N_TEXTS)
    _by_distance(values, distances, name="scores-by-distance", caption=caption, alt=p.words("distance_alt"))
    strongest = int((values.max(axis=1) - values.mean(axis=1)).argmax())
    p.say("distance_strongest", head=str(strongest), distance=int(distances[values[strongest].argmax()]))
    if scheme_of(p) == "alibi":
        heads = p.checkpoint.config.heads_in(stack)
        slopes = r", \qquad m_h = 2^{-8 (h + 1) / n}" if heads & (heads - 1) == 0 else ""  # a power of two
        p.formula(
            rf"s_{{ij}} = \frac{{q_i \cdot k_j}}{{\sqrt{{d_k}}}} - m_h \, |i - j|{slopes}", "alibi_formula", heads=heads
        )
