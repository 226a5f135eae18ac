"""The blocks of a model's diagram, from its configuration and one trace: which, in which order, of which shape."""

from dataclasses import dataclass, field
from typing import Any

from transformer.config import ModelConfig
from transformer.runs.traces import Trace
from ui.words.texts import common


@dataclass(frozen=True)
class Block:
    """One block of the diagram.

    ``activation`` is what it gives on, ``shape`` and ``axes`` are that activation's in this trace. ``page`` and
    ``focus`` say where a click leads. ``role`` fixes its colour. ``skips_from``: the block whose input an "add" adds.
    """

    id: str
    label: str
    role: str
    stack: str
    activation: str
    shape: tuple[int, ...]
    axes: tuple[str, ...]
    page: str
    focus: dict[str, Any] = field(default_factory=dict)
    in_layer: bool = False
    skips_from: str = ""
    note: str = ""


@dataclass(frozen=True)
class Stack:
    """One column of the diagram, its blocks from the bottom (the input) to the top."""

    name: str
    n_layers: int
    layer: int
    blocks: tuple[Block, ...]

    @property
    def output(self) -> Block:
        """The block whose result leaves the stack: the last one before the projection."""
        return [block for block in self.blocks if block.role != "logits"][-1]


def model_stacks(config: ModelConfig, trace: Trace, *, layer: int = 0) -> tuple[Stack, ...]:
    """The columns of a model, encoder first, with the layer that is looked at drawn for all of its stack."""
    return tuple(
        Stack(
            name=stack,
            n_layers=(n_layers := trace.n_layers(stack)),
            layer=min(layer, n_layers - 1),
            blocks=tuple(_blocks(config, trace, stack, min(layer, n_layers - 1))),
        )
        for stack in trace.stacks
    )


def _blocks(config: ModelConfig, trace: Trace, stack: str, layer: int) -> list[Block]:
    def block(name: str, label: str, role: str, activation: str, page: str, **more: Any) -> Block:
        recorded = trace[activation]
        focus = {"stack": stack, "kind": "self", **more.pop("focus", {})}
        return Block(
            id=f"{stack}.{name}",
            label=common(f"diagram.{label}"),
            role=role,
            stack=stack,
            activation=activation,
            shape=recorded.shape,
            axes=recorded.axes,
            page=page,
            focus=focus,
            **more,
        )

    embedded = block("embedding", "embedding", "embedding", f"{stack}.embedding.token", "embeddings")
    tokens = Block(
        id=f"{stack}.tokens",
        label=common("diagram.tokens"),
        role="tokens",
        stack=stack,
        activation="",
        shape=(len(trace.tokens(stack)),),
        axes=("position",),
        page="tokens",
        focus={"stack": stack, "kind": "self"},
    )
    blocks = [tokens, embedded]
    if f"{stack}.embedding.position" in trace:
        blocks.append(block("positions", "positions", "positions", f"{stack}.embedding.sum", "positions"))
    for name in ("self_attention", "cross_attention", "feed_forward"):
        if f"{stack}.layers.{layer}.{name}.output" in trace:
            blocks += _sublayer(config, stack, layer, name, block)
    if f"{stack}.final_norm.output" in trace:
        blocks.append(block("final_norm", "norm", "norm", f"{stack}.final_norm.output", "add_norm"))
    if f"{stack}.logits" in trace:
        blocks.append(block("logits", "logits", "logits", f"{stack}.logits", "decoding"))
    elif stack == "encoder" and "classifier.logits" in trace:
        blocks.append(block("logits", "class_logits", "logits", "classifier.logits", "decoding"))
    return blocks


def _sublayer(config: ModelConfig, stack: str, layer: int, name: str, block: Any) -> list[Block]:
    """LayerNorm, sub-layer and Add, in the order of this model: pre-norm normalises first, post-norm last."""
    path = f"{stack}.layers.{layer}"
    focus = {"layer": layer, "kind": "cross" if name == "cross_attention" else "self"}
    pre_norm = config.norm == "pre"
    if name == "feed_forward":
        role, label, page, activation = "feed_forward", name, "feed_forward", f"{path}.{name}.output"
        note = ""
    else:
        role, page, activation = name, "attention", f"{path}.{name}.output"
        label = "masked_self_attention" if (stack, name) == ("decoder", "self_attention") else name
        in_scores = config.positions in ("rotary", "relative") and name == "self_attention"
        note = common(f"diagram.{config.positions}") if in_scores else ""
    after = {"self_attention": "after_self_attention", "cross_attention": "after_cross_attention"}.get(name, "out")
    added = f"{path}.residual.{after}" if pre_norm else f"{path}.{name}_norm.input"
    norm = block(
        f"{name}_norm", "norm", "norm", f"{path}.{name}_norm.output", "add_norm", in_layer=True, focus={"layer": layer}
    )
    core = block(name, label, role, activation, page, in_layer=True, focus=focus, note=note)
    first = norm if pre_norm else core
    add = block(
        f"{name}_add", "add", "add", added, "add_norm", in_layer=True, focus={"layer": layer}, skips_from=first.id
    )
    return [norm, core, add] if pre_norm else [core, add, norm]
