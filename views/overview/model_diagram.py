"""The loaded model as blocks with the shapes of this sentence; every block links to its page."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from transformer.config import ModelConfig
from transformer.runs.next_sentence import LOGITS as NEXT_SENTENCE_LOGITS
from transformer.runs.traces import Trace
from transformer.text.tokens import TokenSequence
from ui.shell.events import component, heard, one_of, whole_number
from ui.shell.focus import select
from ui.shell.navigation import go_to, pages_of
from ui.words.texts import common, page_text

_KEY = "model diagram"
_IN_SCORES = ("rotary", "relative", "alibi")  # positions that are not added to the embedding
_SUBLAYERS = {  # name and what the residual stream is called after it
    "self_attention": "after_self_attention",
    "cross_attention": "after_cross_attention",
    "feed_forward": "out",
}
_component = component("diagram", Path(__file__).with_name("model_diagram.js"))


@dataclass(frozen=True)
class Block:
    """One block of the diagram.

    ``activation`` is its output, ``shape`` and ``axes`` are that activation's in this trace. A click opens ``page``
    with ``focus``. ``role`` determines its colour. ``skips_from``: the block whose input an "add" adds.
    """

    id: str
    label: str
    role: str
    activation: str
    shape: tuple[int, ...]
    axes: tuple[str, ...]
    page: str
    focus: dict[str, Any] = field(default_factory=dict)
    in_layer: bool = False
    skips_from: str = ""
    note: str = ""


@dataclass(frozen=True)
class Column:
    """One stack: its blocks from the bottom (the input) to the top, with one of its layers."""

    stack: str
    layer: int
    blocks: tuple[Block, ...]

    @property
    def output(self) -> Block:
        """The block whose output leaves the stack: the last one before the projection."""
        return [block for block in self.blocks if block.role != "logits"][-1]


def model_diagram(trace: Trace, *, layer: int = 0) -> None:
    """Draw the model; a click on a block opens its page.

    The layer drawn is the focused one; a click on another layer's number changes the shared focus.
    """
    columns, existing = model_columns(trace, layer=layer), tuple(pages_of(trace.checkpoint.config))
    found = [block for column in columns for block in column.blocks]
    opens = {block.id: (block.page, block.focus) for block in found if block.page in existing}
    data = diagram_data(columns, trace, pages=existing)
    _component(key=_KEY, data=data, on_opened_change=partial(_open, opens), on_layer_change=_choose_layer)


def _open(blocks: Mapping[str, tuple[str, dict[str, Any]]], /) -> None:
    """Handle a click; ``blocks`` gives by block id the page that opens, and its focus."""
    if clicked := one_of(heard(_KEY, "opened"), blocks):
        page, place = blocks[clicked]
        go_to(page, **place)


def _choose_layer() -> None:
    select(layer=whole_number(heard(_KEY, "layer")))


# ---- what is drawn --------------------------------------------------------------------------------------------------


def diagram_data(columns: tuple[Column, ...], trace: Trace, *, pages: Collection[str]) -> dict[str, Any]:
    """Return the data of the component; ``pages`` are those that exist: other blocks cannot be clicked."""
    titles = {name: page_text(name).title for name in pages}
    drawn = [
        {
            "title": common(f"diagram.{column.stack}"),
            "reads": _read(trace.tokens(column.stack)),
            "layer": column.layer,
            "n_layers": trace.n_layers(column.stack),
            "layers_text": common("diagram.layers", count=trace.n_layers(column.stack)),
            "layer_text": common("diagram.layer"),
            "blocks": [_drawn(block, titles) for block in column.blocks],
        }
        for column in columns
    ]
    cross = [block.id for column in columns for block in column.blocks if block.id == "decoder.cross_attention"]
    edges = [{"from": columns[0].output.id, "to": target} for target in cross]
    said = {"name": common("diagram.name"), "answer": trace.text, "answer_text": common("diagram.answer")}
    return {**said, "columns": drawn, "edges": edges}


def _read(tokens: TokenSequence) -> str:
    """Return everything that a stack reads: the text with all special tokens."""
    specials = [token.special for token in tokens]
    begin = specials.index(False) if False in specials else len(tokens)
    end = len(tokens) - (specials[::-1].index(False) if False in specials else 0)
    inside = "".join(f" {token.display}" if token.special else token.text for token in tokens[begin:end])
    before, behind = (" ".join(token.display for token in part) for part in (tokens[:begin], tokens[end:]))
    return " ".join(filter(None, (before, inside.removeprefix(" "), behind)))


def _drawn(block: Block, titles: Mapping[str, str]) -> dict[str, Any]:
    sizes = " × ".join(f"{axis} {size}" for axis, size in zip(block.axes, block.shape, strict=True))
    opens = common("diagram.opens", page=titles[block.page]) if block.page in titles else ""
    return {
        **{name: getattr(block, name) for name in ("id", "label", "role", "in_layer", "skips_from", "note")},
        "shape": " × ".join(map(str, block.shape)),
        "title": "\n".join(filter(None, (block.activation, sizes, opens))),
        "name": ", ".join(filter(None, (block.label, sizes, opens))),
        "clickable": block.page in titles,
    }


# ---- the blocks of a model ------------------------------------------------------------------------------------------


def model_columns(trace: Trace, *, layer: int = 0) -> tuple[Column, ...]:
    """Return the columns of a model, encoder first; the focused layer represents its stack."""
    shown = {stack: min(layer, trace.n_layers(stack) - 1) for stack in trace.stacks}
    return tuple(Column(stack, one, tuple(_Stack(trace, stack, one).blocks())) for stack, one in shown.items())


@dataclass(frozen=True)
class _Stack:
    trace: Trace
    stack: str
    layer: int

    @property
    def config(self) -> ModelConfig:
        return self.trace.checkpoint.config

    def block(self, name: str, label: str, role: str, activation: str, page: str, **more: Any) -> Block:
        """Return the block of a recorded activation."""
        recorded, focus = self.trace[activation], {"stack": self.stack, "kind": "self", **more.pop("focus", {})}
        label, place = common(f"diagram.{label}"), f"{self.stack}.{name}"
        return Block(place, label, role, activation, recorded.shape, recorded.axes, page, focus, **more)

    def blocks(self) -> list[Block]:
        """Return all blocks, from the bottom to the top."""
        stack, trace = self.stack, self.trace
        patches = self.config.reads_images  # they are projected, so the model reads no ids
        label, size = common("diagram.patches" if patches else "diagram.tokens"), (len(trace.tokens(stack)),)
        focus, embedding = {"stack": stack, "kind": "self"}, "patch_embedding" if patches else "embedding"
        found = [
            Block(f"{stack}.tokens", label, "tokens", "", size, ("position",), "tokens", focus),
            self.block("embedding", embedding, "embedding", f"{stack}.embedding.token", "embeddings"),
        ]
        if f"{stack}.embedding.position" in trace:
            label = "positions_segments" if f"{stack}.embedding.segment" in trace else "positions"
            found.append(self.block("positions", label, "positions", f"{stack}.embedding.sum", "positions"))
        found += self.norm(f"{stack}.embedding.norm", "embedding_norm")
        for name in _SUBLAYERS:
            if f"{stack}.layers.{self.layer}.{name}.output" in trace:
                found += self.sublayer(name)
        found += self.norm(f"{stack}.final_norm", "final_norm")
        if f"{stack}.logits" in trace:
            note = common("diagram.own_layer") if stack == "encoder" and self.config.is_guest else ""
            found.append(self.block("logits", "logits", "logits", f"{stack}.logits", "decoding", note=note))
            if NEXT_SENTENCE_LOGITS in trace:
                name = "next_sentence"
                found.append(self.block(name, name, "logits", NEXT_SENTENCE_LOGITS, "decoding"))
        elif stack == "encoder" and "classifier.logits" in trace:
            found.append(self.block("logits", "class_logits", "logits", "classifier.logits", "decoding"))
        return found

    def norm(self, path: str, name: str, **more: Any) -> list[Block]:
        """Return the block of a LayerNorm or RMSNorm, if there is one."""
        if f"{path}.output" not in self.trace:
            return []
        label = "rms_norm" if f"{path}.mean_square" in self.trace else "norm"
        return [self.block(name, label, "norm", f"{path}.output", "add_norm", **more)]

    def sublayer(self, name: str) -> list[Block]:
        """Return norm, sub-layer and addition in the order of this model.

        Pre-norm normalises first, post-norm last, a sandwich before and after the sub-layer.
        """
        path, pre_norm = f"{self.stack}.layers.{self.layer}", self.config.norm == "pre"
        masked = (self.stack, name) == ("decoder", "self_attention")
        page, kind = "feed_forward" if name == "feed_forward" else "attention", name.removesuffix("_attention")
        more = {"in_layer": True, "focus": {"layer": self.layer}}
        norm = self.norm(f"{path}.{name}_norm", f"{name}_norm", **more)
        behind = self.norm(f"{path}.{name}_output_norm", f"{name}_output_norm", **more)
        core = self.block(
            name, f"masked_{name}" if masked else name, name, f"{path}.{name}.output", page, in_layer=True,
            focus={"layer": self.layer, "kind": "cross" if kind == "cross" else "self"}, note=self.notes(name),
        )  # fmt: skip
        first = norm[0] if pre_norm and norm else core  # OLMo 2 has only a norm after each sub-layer
        added = f"{path}.residual.{_SUBLAYERS[name]}" if pre_norm else f"{path}.{name}_norm.input"
        add = self.block(f"{name}_add", "add", "add", added, "add_norm", skips_from=first.id, **more)
        return [*norm, core, *behind, add] if pre_norm else [core, add, *norm]

    def notes(self, name: str) -> str:
        """Return what is unusual about a sub-layer: positions, shared heads, a query's window, a gate."""
        config, guest = self.config, self.config.is_guest
        found = []
        if name == "feed_forward":
            found += [common("diagram.gated")] if guest and config.gated else []
            found += [common("diagram.parallel")] if guest and config.block == "parallel" else []
        elif name == "self_attention":
            found += [common(f"diagram.{kind}") for kind in config.kinds_in(self.stack) if kind in _IN_SCORES]
            if guest and config.n_key_heads and config.n_key_heads < config.n_heads:
                found.append(common("diagram.shared_keys", heads=config.n_heads, keys=config.n_key_heads))
            if guest and config.windows and config.windows[self.layer] is not None:
                found.append(common("diagram.window", window=config.windows[self.layer]))
        return " · ".join(found)
