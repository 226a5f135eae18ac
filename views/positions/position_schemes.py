"""What the Positions page shows of each scheme: the table, its waves, how alike positions are, angles and biases."""

from collections.abc import Callable

import numpy as np
import streamlit as st

from charts.toolkit.numbers import in_tex
from charts.toolkit.style import three_digits
from transformer.attention_maps.attention_arithmetic import score_rule
from transformer.layers import positional_encodings
from transformer.variants.family_embedding import HalvedSinusoids
from ui.compute.loading import checkpoint_names, config_of, load_checkpoint
from ui.shell import choice
from ui.shell.choice import one_of
from ui.shell.page import Page
from ui.shell.presentation.presenter import labels
from ui.show.figures import show_figure, show_formula
from ui.show.score_formula import score_formula
from ui.words.model_terms import embedding_scale
from ui.words.texts import PageText, as_plain, page_texts
from views.positions.disentangled import position_terms
from views.positions.distance import by_distance
from views.positions.distance_figures import distance_buckets, relative_bias
from views.positions.encoding_figures import embedding_sum, encoding_heatmap, encoding_waves, position_similarity
from views.positions.rotary import angles, two_heatmaps
from views.positions.table import Shown, even, table_of

LONGEST = 64  # positions shown at first; a longer sentence shows all of its own
FAR = 32  # distances shown to each side
_BACK = 2  # tokens, for the linear map
SCHEMES = ("sinusoidal", "learned", "rotary", "relative", "alibi")


def scheme_of(p: Page) -> Shown:
    """The checkpoint's own scheme unless another one is asked for."""
    own = p.checkpoint.config.positions
    names, first = _schemes(p)
    scheme = choice.read_option("scheme", names, first, owner=p.focus.checkpoint)
    if scheme == own:
        return Shown(scheme, p.checkpoint, True)
    name = _other_checkpoint(scheme) if scheme in ("learned", "relative") else ""
    return Shown(scheme, load_checkpoint(name) if name else None, False)


def choose_scheme(p: Page) -> None:
    """The list of schemes."""
    names, first = _schemes(p)
    one_of(
        p.text["scheme"],
        names,
        first,
        key="scheme",
        owner=p.focus.checkpoint,
        in_list=True,
        width=190,
        label_visibility=labels(),
    )


def _schemes(p: Page) -> tuple[dict[str, list[str]], str]:
    """What each scheme is called, and the one to begin with: the checkpoint's own, if it has one."""
    own = p.checkpoint.config.positions
    schemes = (*SCHEMES, own) if own == "disentangled" else SCHEMES

    def name(scheme: str, text: PageText) -> str:
        return text["own_mark"].format(scheme=text[scheme]) if scheme == own else text[scheme]

    names = {scheme: [name(scheme, text) for text in page_texts(p.text.name)] for scheme in schemes}
    return names, own if own in schemes else SCHEMES[0]


def say_whose(p: Page, shown: Shown) -> None:
    """A line that says whose numbers are drawn."""
    own, text = p.checkpoint.config.positions, p.text
    if shown.own:
        key = "own"
    elif shown.checkpoint:
        key = "borrowed"
    else:
        key = "nowhere" if shown.scheme == "learned" else "formula_only"
    name = as_plain(shown.checkpoint.name) if shown.checkpoint else ""
    line = text[key].format(own=text[own], scheme=text[shown.scheme], name=name)
    st.caption(f"{text['nothing_added']} {line}" if own == "none" else line)


def _other_checkpoint(scheme: str) -> str:
    for name in checkpoint_names():
        try:
            if config_of(name).positions == scheme:
                return name
        except (OSError, ValueError):
            continue
    return ""


def views_of(shown: Shown) -> dict[str, Callable[[Page, Shown], None]]:
    """The ways to look at a scheme, by the name of their texts."""
    if shown.scheme == "disentangled":
        return {"terms": position_terms}
    if shown.scheme == "rotary":
        return {"heatmap": two_heatmaps, "angles": angles, "distance": by_distance}
    if shown.scheme == "relative":
        return {"bias": bias, **({"distance": by_distance} if shown.own else {})}
    if shown.scheme == "alibi":
        return {"distance": by_distance}
    if shown.scheme == "learned" and shown.checkpoint is None:
        return {}
    more = {"sum": token_plus_position} if shown.own else {}
    return {"heatmap": heatmap, "waves": waves, "similarity": similarity, **more, "distance": by_distance}


def _n_positions(p: Page, shown: Shown) -> int:
    """How many positions to draw: at least those of the sentence."""
    limit = (shown.checkpoint or p.checkpoint).config.max_length
    n_tokens = min(limit, len(p.trace.tokens(p.focus.stack)))
    smallest = min(limit, max(16, n_tokens))
    if smallest == limit:
        return limit
    start = min(limit, max(LONGEST, smallest))
    return choice.slider(
        p.text["shown"], smallest, limit, start, key="positions shown", owner=(limit, smallest), width=420
    )


def in_halves(p: Page, shown: Shown) -> bool:
    """Whether all sines stand before all cosines (Marian, M2M100), not in pairs."""
    return shown.own and isinstance(
        p.checkpoint.model.get_submodule(p.focus.stack).embedding.position_encoding, HalvedSinusoids
    )


def heatmap(p: Page, shown: Shown) -> None:
    """The rows that are added to this sentence's tokens; further rows of the table on request."""
    above = st.container()
    tokens = p.trace.tokens(p.focus.stack)
    maximum = (shown.checkpoint or p.checkpoint).config.max_length
    n_rows = min(len(tokens), maximum)
    if n_rows < maximum:
        n_rows = choice.slider(
            p.text["shown"], n_rows, maximum, n_rows, key="rows shown", owner=(maximum, n_rows), width=420
        )
    table = table_of(p, shown, n_rows)
    with above:
        show_figure(
            encoding_heatmap(table, tokens=tokens if len(tokens) <= len(table) else None),
            name="positions-heatmap",
            caption=p.text["heatmap_caption"].format(count=len(table), maximum=maximum),
        )
    _formula(p, shown)


def waves(p: Page, shown: Shown) -> None:
    """Single columns of the table."""
    above = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        n_positions = _n_positions(p, shown)
        table = table_of(p, shown, n_positions)
        width = table.shape[1]
        start = sorted({2 * (width * part // 32) for part in (0, 1, 2, 4, 8)})
        dimensions = choice.several(
            p.text["dimensions"],
            range(width),
            default=start,
            max_selections=8,
            key="dimensions",
            owner=width,
            help=p.text["dimensions_help_halves" if in_halves(p, shown) else "dimensions_help"],
        )
    tokens = p.trace.tokens(p.focus.stack)
    with above:
        show_figure(
            encoding_waves(table, dimensions=sorted(dimensions) or [0], tokens=tokens),
            name="positions-waves",
            caption=p.text["waves_caption"],
        )
    _formula(p, shown, dimension=max(dimensions, default=0))


def similarity(p: Page, shown: Shown) -> None:
    """How alike the rows of every two positions are."""
    above = st.container()
    table = table_of(p, shown, _n_positions(p, shown))
    with above:
        show_figure(
            position_similarity(positional_encodings.similarity(table)),
            name="positions-similarity",
            caption=p.text["similarity_caption"].format(regularity=p.text[f"similarity_{shown.scheme}"]),
        )
    if shown.scheme == "sinusoidal" and not in_halves(p, shown) and table.shape[1] % 2 == 0 and len(table) > _BACK:
        _linear_map(p, table)


def _linear_map(p: Page, table: np.ndarray) -> None:
    """What a similarity cannot tell and the encodings can: which way, by one linear map for all positions."""
    deviation = np.abs(positional_encodings.shifted(table[_BACK:], -_BACK) - table[:-_BACK]).max()
    st.markdown(p.text["shift"].format(distance=_BACK))
    show_formula(
        r"\begin{pmatrix} PE_{p+k,\,2i} \\ PE_{p+k,\,2i+1} \end{pmatrix} = "
        r"\begin{pmatrix} \cos k\omega_i & \sin k\omega_i \\ -\sin k\omega_i & \cos k\omega_i \end{pmatrix} "
        r"\begin{pmatrix} PE_{p,\,2i} \\ PE_{p,\,2i+1} \end{pmatrix}"
        rf", \qquad \omega_i = 10000^{{-2i/{table.shape[1]}}}",
        caption=p.text["shift_caption"].format(distance=_BACK, count=len(table), deviation=three_digits(deviation)),
    )


def token_plus_position(p: Page, shown: Shown) -> None:
    """What enters the first layer, and what it is the sum of."""
    stack, tokens = p.focus.stack, p.trace.tokens(p.focus.stack)
    embedding = p.checkpoint.model.get_submodule(stack).embedding
    scale = embedding_scale(embedding, p.checkpoint.config.d_model)
    token, position, total = (p.trace.values(f"{stack}.embedding.{part}") for part in ("token", "position", "sum"))
    show_figure(
        embedding_sum(token, position=position, total=total, tokens=tokens, scaled=bool(scale)),
        name="token-plus-position",
        caption=p.text["sum_caption"].format(scale=scale),
    )
    for part in ("segment", "projection", "norm"):
        if getattr(embedding, part, None) is not None:
            st.markdown(p.text[f"sum_{part}"])
    paper = scale == " × √d_model"
    factor = r"\sqrt{d_{\text{model}}}\, " if paper else rf"{in_tex(three_digits(embedding.scale))}\, " if scale else ""
    lengths = [three_digits(np.linalg.norm(rows[p.focus.token])) for rows in (token, position, total)]
    st.markdown(
        p.text["sum_text"].format(
            token=as_plain(tokens[p.focus.token].display),
            position=p.focus.token,
            **dict(zip(("token_length", "position_length", "sum_length"), lengths, strict=True)),
        )
    )
    show_formula(
        rf"x_{{\text{{pos}}}} = {factor}E[\text{{id}}_{{\text{{pos}}}}] + PE_{{\text{{pos}}}}"
        + (r" + S_0" if getattr(embedding, "segment", None) is not None else ""),
        caption=" + ".join([f"{len(tokens)} × {token.shape[1]}"] * 2) + f" = {len(tokens)} × {token.shape[1]}",
    )


def bias(p: Page, shown: Shown) -> None:
    """The relative bias: what each head adds to the score of a key at each distance."""
    if shown.checkpoint is None:
        causal = p.focus.stack == "decoder"
        buckets, distances = positional_encodings.relative_buckets(p.checkpoint.config, 4 * FAR, causal=causal)
        figure, caption = distance_buckets(buckets, distances=distances), p.text["buckets_caption"]
    else:
        config = shown.checkpoint.config
        stack = p.focus.stack if shown.own else "encoder" if config.has_encoder else "decoder"
        values, distances = positional_encodings.relative_bias(shown.checkpoint.model, stack, FAR)
        zero = "" if values.any() else p.text["bias_zero"]
        figure, caption = relative_bias(values, distances=distances), p.text["bias_caption"].format(zero=zero)
    show_figure(figure, name="relative-bias", caption=caption)
    n_tokens = len(p.trace.tokens(p.focus.stack))
    rule, heads = score_rule(p.checkpoint, p.focus.stack, 0, "self"), p.checkpoint.config.heads_in(p.focus.stack)
    product = score_formula(rule, r"q_i \cdot k_j", root="d_k") if shown.own else r"\frac{q_i \cdot k_j}{\sqrt{d_k}}"
    show_formula(
        rf"s_{{ij}} = {product} + b_{{\text{{head}}}}(j - i)",
        caption=f"{p.text['relative_formula']} b: {heads} × {n_tokens} × {n_tokens}.",
    )


def _formula(p: Page, shown: Shown, *, dimension: int = 0) -> None:
    """The formula with the shapes of this sentence and one number worked out."""
    tokens, config = p.trace.tokens(p.focus.stack), (shown.checkpoint or p.checkpoint).config
    width, count = config.d_model, len(tokens)
    if shown.scheme == "learned":
        caption = p.text["learned_formula"].format(maximum=config.max_length, width=width, count=count)
        show_formula(r"PE_{\text{pos}} = P[\text{pos}]", caption=caption)
        return
    if in_halves(p, shown):
        encoding = p.checkpoint.model.get_submodule(p.focus.stack).embedding.position_encoding
        place = f"(\\text{{pos}} + {encoding.offset})" if encoding.offset else r"\text{pos}"
        angle = rf"\left({place} \cdot 10000^{{-i/{encoding.steps:g}}}\right)"
        show_formula(
            rf"\begin{{aligned}} PE_{{\text{{pos}},\,i}} &= \sin{angle} \\"
            rf" PE_{{\text{{pos}},\,i+{width // 2}}} &= \cos{angle} \end{{aligned}}",
            caption=p.text["sinusoidal_formula"].format(width=width, count=count),
        )
        return
    show_formula(
        rf"\begin{{aligned}} PE_{{\text{{pos}},\,2i}} &= \sin\left(\text{{pos}} / 10000^{{2i/{width}}}\right) \\"
        rf" PE_{{\text{{pos}},\,2i+1}} &= \cos\left(\text{{pos}} / 10000^{{2i/{width}}}\right) \end{{aligned}}",
        caption=p.text["sinusoidal_formula"].format(width=width, count=count),
    )
    position = p.focus.token or min(1, count - 1)  # at position 0 every sine is 0: nothing to see
    value = positional_encodings.sinusoidal_table(position + 1, even(width))[position, dimension]
    wave, pair = (r"\sin", dimension) if dimension % 2 == 0 else (r"\cos", dimension - 1)
    angle = rf"\left({position} / 10000^{{{pair}/{width}}}\right)"
    show_formula(
        rf"PE_{{{position},\,{dimension}}} = {wave}{angle} = {in_tex(three_digits(value))}",
        caption=p.text["sinusoidal_number"].format(
            position=position, token=as_plain(tokens[position].display), dimension=dimension
        ),
    )
