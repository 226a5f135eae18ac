"""The first view: one token's vector through the addition and the norm of one sub-layer."""

import numpy as np
import streamlit as st

from charts.toolkit.numbers import number
from charts.toolkit.style import three_digits
from transformer.layers.norms import Half, add_and_norm, norm_kind, norm_names
from ui.shell.choice import chosen_option
from ui.shell.page import Page
from ui.shell.presentation.presenter import labels
from ui.show.figures import show_figure, show_snippet
from ui.words.texts import as_plain
from views.add_norm.vector_strips import READABLE, Part, Strip, beyond, limit_of, vector_strips


def place_of(name: str) -> str:
    """What the texts call the place of a norm: "self_attention_norm", "final_norm", "embedding_norm" …"""
    *_, parent, last = name.split(".")
    return f"{parent}_norm" if last == "norm" else last


def choose_norm(p: Page) -> str:
    """The name of the norm that the whole page is about."""
    names = {place_of(name): name for name in norm_names(p.trace, p.focus.stack, p.focus.layer)}
    more = {"wrap": True, "label_visibility": labels()}
    return names[
        chosen_option(
            p.text, "norm", list(names), key="norm", owner=tuple(names), words=lambda text, name: text[name], **more
        )
    ]


def one_vector(p: Page, norm: str) -> None:
    """What is done to the focused token's vector, in the order in which this model does it."""
    halves = add_and_norm(p.trace, p.focus.stack, p.focus.layer, norm, p.focus.token)
    kind, token = norm_kind(p.checkpoint, norm), as_plain(p.trace.tokens(p.focus.stack)[p.focus.token].display)
    rms = kind == "RMSNorm"
    st.markdown(_claim(p, halves, token=token, kind=kind))
    vectors = [vector for half in halves for vector in half.vectors.values()]
    width, limit = len(vectors[0]), three_digits(limit_of(vectors))
    few = min(READABLE, width)
    caption = p.text["strips_caption"].format(token=token, width=width)
    if count := beyond(vectors):
        caption += f" {p.text['strips_beyond'].format(count=count, limit=limit)}"
    show_figure(
        vector_strips(
            [_part(p, half, kind) for half in halves],
            mean=p.text["strips_mean"],
            spread=p.text["strips_rms" if rms else "strips_std"],
            root_mean_square=rms,
            numbers=p.text["strips_numbers"].format(few=few),
            all_of_it=p.text["strips_all"].format(width=width),
            bar=p.text["strips_value"],
        ),
        name="one-vector",
        caption=caption,
        alt=p.text["strips_alt"].format(token=token),
    )
    show_snippet(
        "one vector",
        f"{p.preamble}from transformer.layers.norms import add_and_norm\n\n"
        f'halves = add_and_norm(trace, "{p.focus.stack}", {p.focus.layer}, "{norm}", {p.focus.token})\n'
        "for half in halves:\n"
        "    for name, vector in half.vectors.items():\n"
        f"        print(half.kind, name, vector[:{few}], vector.mean(), vector.std())\n",
    )


def _claim(p: Page, halves: tuple[Half, ...], *, token: str, kind: str) -> str:
    """One sentence: what happens to this token's vector here."""
    norm = next(half for half in halves if half.kind == "norm")
    add = next((half for half in halves if half.kind == "add"), None)
    x = norm.vectors.get("x", add.vectors.get("sum") if add else None)
    rms = "_rms" if kind == "RMSNorm" else ""
    order = "alone" if add is None else p.checkpoint.config.norm
    if len(halves) == 3:
        order = "sandwich"
    exact = x.astype(np.float64)
    return p.text[f"claim_{order}{rms}"].format(
        token=token,
        kind=kind,
        sublayer=p.text[f"{norm.sublayer}_norm"] if norm.sublayer else "",
        mean=three_digits(exact.mean()),
        std=three_digits(np.sqrt(np.square(exact).mean()) if rms else exact.std()),
        one=three_digits(float(f"{norm.vectors['normalized'].std():.3g}")) if not rms else number("1"),
    )


def _part(p: Page, half: Half, kind: str) -> Part:
    rms = "_rms" if kind == "RMSNorm" else ""
    sublayer = p.text[f"{half.sublayer}_norm"] if half.sublayer else ""
    names = {name: p.text[f"strip_{name}"].format(sublayer=sublayer) for name in half.vectors}
    for name in ("normalized", "scaled"):
        names[name] = p.text[f"strip_{name}{rms}"]
    title = p.text[f"half_{half.kind}"].format(kind=kind, sublayer=sublayer)
    return Part(title, tuple(Strip(names[name], vector) for name, vector in half.vectors.items()))
