"""The first view: one token's vector through the addition and the norm of one sub-layer."""

from functools import partial

import streamlit as st

from charts.toolkit.numbers import number
from charts.toolkit.style import three_digits
from ui.page.page import Page
from ui.shell.choice import chosen_option
from ui.shell.presentation.presenter import labels
from ui.show.figures import show_figure, show_snippet
from ui.words.texts import PageText, as_plain
from views.add_norm.add_norm_view_model import AddNormViewModel, norms_by_place
from views.add_norm.vector_strips_figure import ON_A_PHONE, READABLE, Strip, beyond, limit_of, vector_strips

_ROOM = 640  # pixels that the numbers of a row need; in a narrower window the figure scrolls


def choose_norm(p: Page) -> str:
    """Draw the list of norms and return the name of the chosen one, which the whole page shows."""
    norms = norms_by_place(p.trace, stack=p.focus.stack, layer=p.focus.layer)
    look = {"wrap": True, "label_visibility": labels(), "words": lambda text, name: text[name]}
    return norms[chosen_option(p.text, "norm", list(norms), key="norm", owner=tuple(norms), **look)]


def one_vector(p: Page, view_model: AddNormViewModel) -> None:
    """Draw what happens to the vector of the token in focus, in the order of this model."""
    text, token = p.text, as_plain(view_model.focused.display)
    st.markdown(_claim(view_model, text))
    strips = _strips(view_model, text)
    vectors = [strip.vector for strip in strips]
    width = len(vectors[0])
    few = min(READABLE, width)
    caption = text["strips_caption_rms" if view_model.is_rms else "strips_caption"].format(width=width)
    if count := beyond(vectors):
        caption += f" {text['strips_beyond'].format(count=count, limit=three_digits(limit_of(vectors)))}"
    draw = partial(
        vector_strips,
        strips,
        spread=text["strips_rms" if view_model.is_rms else "strips_std"],
        root_mean_square=view_model.is_rms,
    )
    show_figure(
        draw(numbers=text["strips_numbers"].format(few=few), all_of_it=text["strips_all"].format(width=width)),
        name="one-vector",
        caption=caption,
        alt=text["strips_alt"].format(token=token),
        room=_ROOM,
        narrow=draw(
            numbers=text["strips_numbers_narrow"].format(few=min(ON_A_PHONE, width)),
            all_of_it=text["strips_all_narrow"].format(width=width),
            few=ON_A_PHONE,
        ),
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
    """Write what Add does to this token's vector here, and what Norm does."""
    sublayer = next(half for half in view_model.halves if half.kind == "norm").sublayer
    _, spread, after = view_model.mean_and_spread
    return text[f"claim_{view_model.claim}{'_rms' if view_model.is_rms else ''}"].format(
        token=as_plain(view_model.focused.display),
        sublayer=text[f"{sublayer}_norm"] if sublayer else "",
        std=three_digits(spread),
        one=number("1") if view_model.is_rms else three_digits(float(f"{after:.3g}")),
    )


def _strips(view_model: AddNormViewModel, text: PageText) -> list[Strip]:
    """Return the vectors of ``view_model.vectors`` with the names of their rows."""
    copies = view_model.claim in ("pre", "sandwich")  # the residual stream itself is not normalised
    copy = "strip_copy_rms" if view_model.is_rms else "strip_copy"
    return [
        Strip(
            text[copy if copies and name == "normalized" else f"strip_{name}"].format(
                token=view_model.focused.display, sublayer=text[f"{sublayer}_norm"] if sublayer else ""
            ),
            vector,
            normalized=name == "normalized",
            is_copy=copies and name == "normalized",
        )
        for name, sublayer, vector in view_model.vectors
    ]
