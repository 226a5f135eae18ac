"""The position scheme that is shown, and the checkpoint whose numbers are drawn."""

import streamlit as st

from transformer import Checkpoint
from ui.compute.loading import checkpoint_names, config_of, load_checkpoint
from ui.shell import choice
from ui.shell.choice import one_of
from ui.shell.page import Page
from ui.shell.presentation.presenter import labels
from ui.words.texts import PageText, as_plain, page_texts
from views.positions.positions_view_model import PositionsViewModel, positions_view_model

SCHEMES = ("sinusoidal", "learned", "rotary", "relative", "alibi")


def chosen_scheme(p: Page) -> PositionsViewModel:
    """Build the view model of the chosen scheme, by default the model's own."""
    names, first = _schemes(p)
    scheme = choice.read_option("scheme", names, first, owner=p.focus.checkpoint)
    place = {name: getattr(p.focus, name) for name in ("stack", "layer", "head", "token")}
    return positions_view_model(p.trace, **place, scheme=scheme, lender=_lender(p, scheme))


def choose_scheme(p: Page) -> None:
    """Draw the list of schemes."""
    names, first = _schemes(p)
    look = {"in_list": True, "width": 190, "label_visibility": labels()}
    one_of(p.text["scheme"], names, first, key="scheme", owner=p.focus.checkpoint, **look)


def _schemes(p: Page) -> tuple[dict[str, list[str]], str]:
    """Return the names of the schemes, and the default: the checkpoint's own, if it has one."""
    own = p.checkpoint.config.positions_in(p.focus.stack)
    schemes = (*SCHEMES, own) if own == "disentangled" else SCHEMES

    def name(scheme: str, text: PageText) -> str:
        return text["own_mark"].format(scheme=text[scheme]) if scheme == own else text[scheme]

    names = {scheme: [name(scheme, text) for text in page_texts(p.text.name)] for scheme in schemes}
    return names, own if own in schemes else SCHEMES[0]


def _lender(p: Page, scheme: str) -> Checkpoint | None:
    """Return the first checkpoint with a trained scheme that the model lacks."""
    if scheme == p.checkpoint.config.positions_in(p.focus.stack) or scheme not in ("learned", "relative"):
        return None
    for name in checkpoint_names():
        try:
            if config_of(name).positions == scheme:
                return load_checkpoint(name)
        except (OSError, ValueError):
            continue
    return None


def say_whose(view_model: PositionsViewModel, text: PageText) -> None:
    """Write a line that names the source of the numbers."""
    config, scheme, lender = view_model.checkpoint.config, view_model.scheme, view_model.lender
    own = config.positions_in(view_model.stack)
    if own == "unknown":
        st.caption(text["not_established"].format(scheme=text[scheme]))
        return
    if view_model.is_own:
        key = "own"
    elif lender:
        key = "borrowed"
    else:
        key = "nowhere" if scheme == "learned" else "formula_only"
    line = text[key].format(own=text[own], scheme=text[scheme], name=as_plain(lender.name) if lender else "")
    lines = [text["nothing_added"]] if own == "none" else []
    lines += [line, *(text[f"also_{kind}"] for kind in config.kinds_in(view_model.stack)[1:])]
    if view_model.layers_without:
        lines.append(text["layers_without"].format(layers=", ".join(map(str, view_model.layers_without))))
    st.caption(" ".join(lines))
