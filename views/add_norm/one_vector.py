"""The first view: one token's vector through the addition and the norm of one sub-layer."""

import streamlit as st

from charts.toolkit.numbers import number
from charts.toolkit.style import three_digits
from transformer.layers.norms import Half
from ui.shell.choice import chosen_option
from ui.shell.page import Page
from ui.shell.presentation.presenter import labels
from ui.show.figures import show_figure, show_snippet
from ui.words.texts import PageText, as_plain
from views.add_norm.add_norm_view_model import AddNormViewModel, norms_by_place
from views.add_norm.vector_strips_figure import READABLE, Part, Strip, beyond, limit_of, vector_strips


def choose_norm(p: Page) -> str:
    """Draw the list of norms; the name of the one that the whole page is about."""
    norms = norms_by_place(p.trace, stack=p.focus.stack, layer=p.focus.layer)
    look = {"wrap": True, "label_visibility": labels(), "words": lambda text, name: text[name]}
    return norms[chosen_option(p.text, "norm", list(norms), key="norm", owner=tuple(norms), **look)]


def one_vector(p: Page, view_model: AddNormViewModel) -> None:
    """Draw what is done to the vector of the token in focus, in the order in which this model does it."""
    text, halves, token = p.text, view_model.halves, as_plain(view_model.focused.display)
    st.markdown(_claim(view_model, text))
    vectors = [vector for half in halves for vector in half.vectors.values()]
    width, limit = len(vectors[0]), three_digits(limit_of(vectors))
    few = min(READABLE, width)
    caption = text["strips_caption"].format(token=token, width=width)
    if count := beyond(vectors):
        caption += f" {text['strips_beyond'].format(count=count, limit=limit)}"
    show_figure(
        vector_strips(
            [_part(view_model, half, text) for half in halves],
            mean=text["strips_mean"],
            spread=text["strips_rms" if view_model.is_rms else "strips_std"],
            root_mean_square=view_model.is_rms,
            numbers=text["strips_numbers"].format(few=few),
            all_of_it=text["strips_all"].format(width=width),
            bar=text["strips_value"],
        ),
        name="one-vector",
        caption=caption,
        alt=text["strips_alt"].format(token=token),
    )
    place = f'"{view_model.stack}", {view_model.layer}, "{view_model.norm}", {view_model.token}'
    show_snippet(
        "one vector",
        f"{p.preamble}from transformer.layers.norms import add_and_norm\n\n"
        f"halves = add_and_norm(trace, {place})\n"
        "for half in halves:\n"
        "    for name, vector in half.vectors.items():\n"
        f"        print(half.kind, name, vector[:{few}], vector.mean(), vector.std())\n",
    )


def _claim(view_model: AddNormViewModel, text: PageText) -> str:
    """One sentence: what happens to this token's vector here."""
    sublayer = next(half for half in view_model.halves if half.kind == "norm").sublayer
    mean, spread, after = view_model.mean_and_spread
    return text[f"claim_{view_model.claim}{'_rms' if view_model.is_rms else ''}"].format(
        token=as_plain(view_model.focused.display),
        kind=view_model.kind,
        sublayer=text[f"{sublayer}_norm"] if sublayer else "",
        mean=three_digits(mean),
        std=three_digits(spread),
        one=number("1") if view_model.is_rms else three_digits(float(f"{after:.3g}")),
    )


def _part(view_model: AddNormViewModel, half: Half, text: PageText) -> Part:
    rms = "_rms" if view_model.is_rms else ""
    sublayer = text[f"{half.sublayer}_norm"] if half.sublayer else ""
    names = {name: text[f"strip_{name}"].format(sublayer=sublayer) for name in half.vectors}
    for name in ("normalized", "scaled"):
        names[name] = text[f"strip_{name}{rms}"]
    title = text[f"half_{half.kind}"].format(kind=view_model.kind, sublayer=sublayer)
    return Part(title, tuple(Strip(names[name], vector) for name, vector in half.vectors.items()))
