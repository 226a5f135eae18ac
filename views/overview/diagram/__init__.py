"""The loaded model as a diagram with the shapes of this sentence; every block links to its page."""

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from transformer.config import ModelConfig
from transformer.runs.traces import Trace
from transformer.text.tokens import TokenSequence
from ui.shell.events import component, heard, one_of, whole_number
from ui.shell.focus import select
from ui.shell.navigation import GROUPS, go_to, pages_of
from ui.words.texts import common
from views.overview.diagram.blocks import Block, Stack, model_stacks

__all__ = ["Block", "Stack", "diagram_data", "model_diagram", "model_stacks"]

_KEY = "model diagram"
_component = component("diagram", Path(__file__).with_name("diagram.js"))


def model_diagram(config: ModelConfig, trace: Trace, *, layer: int = 0) -> None:
    """Draw the model; a click on a block opens its page.

    The layer drawn is the focused one; a click on another layer's number changes the shared focus.
    """
    stacks = model_stacks(config, trace, layer=layer)
    existing = tuple(pages_of(config))
    blocks = {
        block.id: (block.page, block.focus) for stack in stacks for block in stack.blocks if block.page in existing
    }
    _component(
        key=_KEY,
        data=diagram_data(stacks, trace, pages=existing),
        on_opened_change=partial(_open, blocks),
        on_layer_change=_choose_layer,
    )


def diagram_data(stacks: tuple[Stack, ...], trace: Trace, *, pages: tuple[str, ...]) -> dict[str, Any]:
    """Return the data of the component; ``pages`` are those that exist: other blocks cannot be clicked."""
    titles = {entry.name: entry.title for group in GROUPS.values() for entry in group if entry.name in pages}
    columns = [
        {
            "title": common(f"diagram.{stack.name}"),
            "reads": _read(trace.tokens(stack.name)),
            "layer": stack.layer,
            "n_layers": stack.n_layers,
            "layers_text": common("diagram.layers", count=stack.n_layers),
            "layer_text": common("diagram.layer"),
            "blocks": [_drawn(block, titles=titles, pages=pages) for block in stack.blocks],
        }
        for stack in stacks
    ]
    cross = [block.id for stack in stacks for block in stack.blocks if block.id == "decoder.cross_attention"]
    edges = [{"from": stacks[0].output.id, "to": target} for target in cross]
    said = {"name": common("diagram.name"), "answer": trace.text, "answer_text": common("diagram.answer")}
    return {**said, "columns": columns, "edges": edges}


def _read(tokens: TokenSequence) -> str:
    """Return everything that a stack reads: the text with all special tokens."""
    specials = [token.special for token in tokens]
    begin = specials.index(False) if False in specials else len(tokens)
    end = len(tokens) - (specials[::-1].index(False) if False in specials else 0)
    inside = "".join(f" {token.display}" if token.special else token.text for token in tokens[begin:end])
    before, behind = (" ".join(token.display for token in part) for part in (tokens[:begin], tokens[end:]))
    return " ".join(filter(None, (before, inside.removeprefix(" "), behind)))


def _drawn(block: Block, *, titles: dict[str, str], pages: tuple[str, ...]) -> dict[str, Any]:
    sizes = " × ".join(f"{axis} {size}" for axis, size in zip(block.axes, block.shape, strict=True))
    opens = common("diagram.opens", page=titles[block.page]) if block.page in pages else ""
    described = asdict(block)
    return {
        **{name: described[name] for name in ("id", "label", "role", "in_layer", "skips_from", "note")},
        "shape": " × ".join(str(size) for size in block.shape),
        "title": "\n".join(filter(None, (block.activation, sizes, opens))),
        "name": ", ".join(filter(None, (block.label, sizes, opens))),
        "clickable": block.page in pages,
    }


def _open(blocks: Mapping[str, tuple[str, dict[str, Any]]], /) -> None:
    """Handle a click; ``blocks`` gives by block id the page that opens, and its focus."""
    if clicked := one_of(heard(_KEY, "opened"), blocks):
        page, place = blocks[clicked]
        go_to(page, **place)


def _choose_layer() -> None:
    chosen = whole_number(heard(_KEY, "layer"))
    if chosen is not None:
        select(layer=chosen)
