"""The nearest existing location for a requested one, with a line about each missing part."""

from dataclasses import replace

from charts.toolkit.words import localize
from transformer.config import ModelConfig
from transformer.runs.inputs import prompt_ids
from transformer.runs.traces import STACKS, Trace
from ui.shell.focus import LAST, MAX_PADS, Focus
from ui.words.texts import common


def fit_model(focus: Focus, config: ModelConfig) -> tuple[Focus, tuple[str, ...]]:
    """Return the nearest location in this model, with one line for each part that it lacks."""
    notes = []
    kinds = attention_kinds(config)
    if (focus.stack, focus.kind) not in kinds:
        near = next((pair for pair in kinds if pair[0] == focus.stack), kinds[0])
        # With a single stack there is no choice, so a line is needed only if cross-attention was requested.
        if focus.stack not in STACKS or focus.kind != "self":
            missing = localize(
                f"{focus.stack[:20]} {focus.kind[:20]}-attention"
            )  # a typed address may contain anything
            notes.append(common("note.attention", missing=missing, shown=localize(f"{near[0]} {near[1]}-attention")))
        focus = replace(focus, stack=near[0], kind=near[1])
    n_layers = config.n_encoder_layers if focus.stack == "encoder" else config.n_decoder_layers
    for name, count in (("layer", n_layers), ("head", config.heads_in(focus.stack))):
        value = getattr(focus, name)
        if value >= count:
            notes.append(common(f"note.{name}", value=value, last=count - 1))
            focus = replace(focus, **{name: count - 1})
    if focus.pads > MAX_PADS:
        notes.append(common("note.pads", value=focus.pads, most=MAX_PADS))
        focus = replace(focus, pads=MAX_PADS)
    return focus, tuple(notes)


def fit_trace(focus: Focus, trace: Trace) -> tuple[Focus, tuple[str, ...]]:
    """Return the focus on the nearest token that the focused stack read."""
    count = len(trace.tokens(focus.stack))
    if focus.token == LAST:
        typed = count if trace.source is not None else len(prompt_ids(trace.checkpoint, trace.sentence))
        return replace(focus, token=min(count, typed) - 1), ()
    if focus.token < count:
        return focus, ()
    note = common("note.token", value=focus.token, stack=common(f"focus.{focus.stack}"), last=count - 1)
    return replace(focus, token=max(0, count - 1)), (note,)


def attention_kinds(config: ModelConfig) -> tuple[tuple[str, str], ...]:
    """Return the (stack, kind) pairs of a model, in the order of the forward pass."""
    pairs = []
    if config.has_encoder:
        pairs.append(("encoder", "self"))
    if config.has_decoder:
        pairs.append(("decoder", "self"))
    if config.has_encoder and config.has_decoder:
        pairs.append(("decoder", "cross"))
    return tuple(pairs)
