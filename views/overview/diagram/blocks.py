"""The blocks of a model's diagram, from its configuration and one trace: their order and shapes."""

from dataclasses import dataclass, field
from typing import Any

from transformer.config import ModelConfig
from transformer.guests.guest_config import GuestConfig
from transformer.runs.next_sentence import LOGITS as NEXT_SENTENCE_LOGITS
from transformer.runs.traces import Trace
from ui.words.texts import common

_IN_SCORES = ("rotary", "relative", "alibi")  # positions that are not added to the embedding


@dataclass(frozen=True)
class Block:
    """One block of the diagram.

    ``activation`` is its output, ``shape`` and ``axes`` are that activation's in this trace. A click opens ``page``
    with ``focus``. ``role`` determines its colour. ``skips_from``: the block whose input an "add" adds.
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
        """The block whose output leaves the stack: the last one before the projection."""
        return [block for block in self.blocks if block.role != "logits"][-1]


def model_stacks(config: ModelConfig, trace: Trace, *, layer: int = 0) -> tuple[Stack, ...]:
    """Return the columns of a model, encoder first; the focused layer represents its stack."""
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

    # patches are projected, so the model reads no ids
    reads = "patch" if config.reads_images else "token"
    label = {"patch": "patch_embedding", "token": "embedding"}[reads]
    embedded = block("embedding", label, "embedding", f"{stack}.embedding.token", "embeddings")
    tokens = Block(
        id=f"{stack}.tokens",
        label=common({"patch": "diagram.patches", "token": "diagram.tokens"}[reads]),
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
        label = "positions_segments" if f"{stack}.embedding.segment" in trace else "positions"
        blocks.append(block("positions", label, "positions", f"{stack}.embedding.sum", "positions"))
    blocks += _norm(trace, f"{stack}.embedding.norm", "embedding_norm", block)
    for name in ("self_attention", "cross_attention", "feed_forward"):
        if f"{stack}.layers.{layer}.{name}.output" in trace:
            blocks += _sublayer(config, trace, stack, layer, name, block)
    blocks += _norm(trace, f"{stack}.final_norm", "final_norm", block)
    if f"{stack}.logits" in trace:
        note = common("diagram.own_layer") if stack == "encoder" and isinstance(config, GuestConfig) else ""
        blocks.append(block("logits", "logits", "logits", f"{stack}.logits", "decoding", note=note))
        if NEXT_SENTENCE_LOGITS in trace:
            blocks.append(block("next_sentence", "next_sentence", "logits", NEXT_SENTENCE_LOGITS, "decoding"))
    elif stack == "encoder" and "classifier.logits" in trace:
        blocks.append(block("logits", "class_logits", "logits", "classifier.logits", "decoding"))
    return blocks


def _norm(trace: Trace, path: str, name: str, block: Any, **more: Any) -> list[Block]:
    """Return the block of a LayerNorm or RMSNorm, if there is one."""
    if f"{path}.output" not in trace:
        return []
    label = "rms_norm" if f"{path}.mean_square" in trace else "norm"
    return [block(name, label, "norm", f"{path}.output", "add_norm", **more)]


def _attention_notes(config: ModelConfig, stack: str, layer: int, name: str) -> list[str]:
    """Return notes on an attention block: positions, heads that share keys, the window of a query."""
    if name != "self_attention":
        return []
    notes = [common(f"diagram.{kind}") for kind in config.kinds_in(stack) if kind in _IN_SCORES]
    if isinstance(config, GuestConfig):
        if config.n_key_heads and config.n_key_heads < config.n_heads:
            notes.append(common("diagram.shared_keys", heads=config.n_heads, keys=config.n_key_heads))
        if config.windows and config.windows[layer] is not None:
            notes.append(common("diagram.window", window=config.windows[layer]))
    return notes


def _feed_forward_notes(config: ModelConfig) -> list[str]:
    if not isinstance(config, GuestConfig):
        return []
    notes = [common("diagram.gated")] if config.gated else []
    return notes + ([common("diagram.parallel")] if config.block == "parallel" else [])


def _sublayer(config: ModelConfig, trace: Trace, stack: str, layer: int, name: str, block: Any) -> list[Block]:
    """Return norm, sub-layer and addition in the order of this model.

    Pre-norm normalises first, post-norm last, a sandwich before and after the sub-layer.
    """
    path = f"{stack}.layers.{layer}"
    focus = {"layer": layer, "kind": "cross" if name == "cross_attention" else "self"}
    pre_norm = config.norm == "pre"
    if name == "feed_forward":
        role, label, page, activation = "feed_forward", name, "feed_forward", f"{path}.{name}.output"
        notes = _feed_forward_notes(config)
    else:
        role, page, activation = name, "attention", f"{path}.{name}.output"
        label = "masked_self_attention" if (stack, name) == ("decoder", "self_attention") else name
        notes = _attention_notes(config, stack, layer, name)
    after = {"self_attention": "after_self_attention", "cross_attention": "after_cross_attention"}.get(name, "out")
    added = f"{path}.residual.{after}" if pre_norm else f"{path}.{name}_norm.input"
    more = {"in_layer": True, "focus": {"layer": layer}}
    norm = _norm(trace, f"{path}.{name}_norm", f"{name}_norm", block, **more)
    behind = _norm(trace, f"{path}.{name}_output_norm", f"{name}_output_norm", block, **more)
    core = block(name, label, role, activation, page, in_layer=True, focus=focus, note=" · ".join(notes))
    first = norm[0] if pre_norm and norm else core  # OLMo 2 has only a norm after each sub-layer
    add = block(f"{name}_add", "add", "add", added, "add_norm", skips_from=first.id, **more)
    return [*norm, core, *behind, add] if pre_norm else [core, add, *norm]
