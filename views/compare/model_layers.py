"""One layer of each of two models, block by block, such as that of the 2017 paper and Llama's."""

import streamlit as st

import transformer
from charts.toolkit.numbers import whole
from charts.toolkit.words import localize
from transformer.files.layout import shown_name
from transformer.layers.layer_anatomy import anatomy
from transformer.models import Model
from transformer.runs.run import Run
from transformer.toy.tiny_models import paper_model, tiny_llama
from ui.compute.loading import choosable_checkpoints, load_checkpoint, readable_config
from ui.page.page import Page
from ui.shell import choice
from ui.words.texts import as_plain, problem_text

TINY = {"paper 2017, tiny": paper_model, "Llama, tiny": tiny_llama}


def two_layers(p: Page) -> None:
    """Draw formulas in rows and the two models in columns, then a table of all sizes and differences."""
    names = [*TINY, *choosable_checkpoints(p.focus.checkpoint)]
    chosen = []
    for column, letter, first in zip(_columns(), "AB", (0, _first_llama(names)), strict=True):
        with column:
            more = {"key": f"layers_{letter.lower()}", "format_func": shown_name}
            chosen.append(choice.select(p.words("layers_of", side=letter), names, names[first], **more))
    models = [_model(p, name) for name in chosen]
    if None in models:
        return
    sides = []
    for column, model in zip(_columns(), models, strict=True):
        stack = "encoder" if hasattr(model, "encoder") else "decoder"
        layer = min(p.focus.layer, len(getattr(model, stack).layers) - 1)
        column.caption(p.md(f"layers_heading.{stack}", layer=layer))
        sides.append(p.calc(anatomy, model, stack, layer, name="layer", shows=("",)))
    for one, two in zip(*sides, strict=True):
        for column, part in zip(_columns(localize(one.name)), (one, two), strict=True):
            column.latex(part.formula)
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
    caption = p.md("layers_table", different=sum(bool(row["differs"]) for row in rows), count=len(rows))
    if TINY.keys() & set(chosen):
        caption += f" {p.md('layers_tiny')}"
    widths = dict(zip(rows[0], (100, 190, 290, 290, 60), strict=True))  # in pixels, so that words are not cut off
    columns = {name: st.column_config.Column(width=width) for name, width in widths.items()}
    p.table(rows, name="layers", caption=caption, height=420, column_config=columns)


def _first_llama(names: list[str]) -> int:
    """Return the first real model with layers like Llama's, else the tiny Llama."""
    like_llama = ("decoder-only", True, "sequential")
    for place, name in enumerate(names[len(TINY) :], start=len(TINY)):
        config = readable_config(name)
        if config and config.is_guest and (config.kind, config.gated, config.block) == like_llama:
            return place
    return 1


def _model(p: Page, name: str) -> Model | None:
    if name in TINY:
        return p.calc(TINY[name], name="model")
    try:
        checkpoint = load_checkpoint(name)
    except (transformer.CheckpointError, OSError) as error:
        st.warning(p.md("other_wrong", name=name, message=problem_text(error)), icon=":material/edit:")
        return None
    return p.known(checkpoint.model, f"transformer.load({p.place_of(name)!r}).model", key=Run(checkpoint, ""))


def _columns(name: str = "") -> list:
    """Return two columns with row names to their left."""
    head, *others = st.columns([1, 5, 5], vertical_alignment="center", gap="small")
    head.markdown(f"**{as_plain(name)}**" if name else "")
    return others


def _shown(value: str | int) -> str:
    return whole(value) if isinstance(value, int) else localize(value)
