"""One layer of each of two models, block by block, such as that of the 2017 paper and Llama's."""

from pathlib import Path

import pandas as pd
import streamlit as st

import transformer
from charts.toolkit.numbers import whole
from charts.toolkit.words import localize
from transformer.files.layout import shown_name
from transformer.guests.guest_config import GuestConfig
from transformer.layers.layer_anatomy import LayerPart, anatomy
from transformer.models import Model
from transformer.toy.tiny_models import paper_model, tiny_llama
from ui.compute.loading import choosable_checkpoints, config_of, load_checkpoint
from ui.compute.store import store
from ui.page.page import Page
from ui.shell import choice
from ui.show.figures import show_snippet, show_source, show_table
from ui.words.figure_texts import problem_text
from ui.words.texts import as_plain

TINY = {"paper 2017, tiny": paper_model, "Llama, tiny": tiny_llama}


def layers(p: Page) -> None:
    """Draw formulas in rows and the two models in columns, then a table of all sizes and differences."""
    names = [*TINY, *choosable_checkpoints(p.focus.checkpoint)]
    chosen = []
    for column, letter, first in zip(_columns(), "AB", (0, _first_llama(names)), strict=True):
        key = f"layers_{letter.lower()}"
        with column:
            label = p.text["layers_of"].format(side=letter)
            chosen.append(choice.select(label, names, names[first], key=key, format_func=shown_name))
    models = [_model(p, name) for name in chosen]
    if None in models:
        return
    sides = []
    for column, model in zip(_columns(), models, strict=True):
        stack = "encoder" if hasattr(model, "encoder") else "decoder"
        layer = min(p.focus.layer, len(getattr(model, stack).layers) - 1)
        column.caption(p.text["layers_heading"].format(stack=p.text[f"layers_{stack}"], layer=layer))
        sides.append(anatomy(model, stack, layer))
    for one, two in zip(*sides, strict=True):
        for column, part in zip(_columns(localize(one.name)), (one, two), strict=True):
            column.latex(part.formula)
    table = _table(*sides)
    different = int((table["A"] != table["B"]).sum())
    tiny = f" {p.text['layers_tiny']}" if TINY.keys() & set(chosen) else ""
    caption = p.text["layers_table"].format(different=different, count=len(table)) + tiny
    widths = dict(zip(table, (100, 190, 290, 290, 60), strict=True))  # in pixels, so that words are not cut off
    columns = {name: st.column_config.Column(width=width) for name, width in widths.items()}
    show_table(table, name="layers", caption=caption, height=420, column_config=columns)
    show_snippet(
        "layers",
        "from transformer.layers.layer_anatomy import anatomy\n"
        "from transformer.toy.tiny_models import paper_model, tiny_llama\n\n"
        'for model, stack in ((paper_model(), "encoder"), (tiny_llama(), "decoder")):\n'
        "    for part in anatomy(model, stack, 0):\n"
        "        print(part.name, part.formula, dict(part.facts))\n",
    )
    show_source(anatomy, paper_model, tiny_llama)


def _first_llama(names: list[str]) -> int:
    """Return the first real model with layers like Llama's, else the tiny Llama."""
    for place, name in enumerate(names[len(TINY) :], start=len(TINY)):
        try:
            config = config_of(name)
        except (OSError, ValueError):
            continue
        like_llama = ("decoder-only", True, "sequential")
        if isinstance(config, GuestConfig) and (config.kind, config.gated, config.block) == like_llama:
            return place
    return 1


def _model(p: Page, name: str) -> Model | None:
    if name in TINY:
        return store.get(Path(__file__), ("tiny model", name), TINY[name])
    try:
        return load_checkpoint(name).model
    except (transformer.CheckpointError, OSError) as error:
        message = p.text["other_wrong"].format(name=as_plain(name), message=as_plain(problem_text(error)))
        st.warning(message, icon=":material/edit:")
        return None


def _columns(name: str = "") -> list:
    """Return two columns with row names to their left."""
    head, *others = st.columns([1, 5, 5], vertical_alignment="center", gap="small")
    head.markdown(f"**{as_plain(name)}**" if name else "")
    return others


def _table(*sides: tuple[LayerPart, ...]) -> pd.DataFrame:
    rows = [
        {
            "part": localize(one.name),
            "what": localize(what),
            "A": _shown(first),
            "B": _shown(second),
            "differs": "" if first == second else "≠",
        }
        for one, two in zip(*sides, strict=True)
        for (what, first), (_, second) in zip(one.facts, two.facts, strict=True)
    ]
    return pd.DataFrame(rows)


def _shown(value: str | int) -> str:
    return whole(value) if isinstance(value, int) else localize(value)
