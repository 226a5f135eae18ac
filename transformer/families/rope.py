"""How a foreign config says which channels are turned, how fast, and how the waves are stretched."""

from collections.abc import Mapping

from transformer.errors import CheckpointError
from transformer.families.values import Values
from transformer.variants.rotary import Rotary, RotaryScaling


def rotary_of(
    values: Values, d_head: int, *, base: float = 10_000.0, share: float | None = None, layer_type: str = ""
) -> Rotary:
    """From ``rope_parameters`` (new) or ``rope_theta`` and ``rope_scaling`` (old).

    ``share``: of the channels, where a family turns a part of them; the others' own code does not read it.
    ``layer_type``: the part of nested parameters that is meant ("full_attention", "sliding_attention"). Raises
    ``CheckpointError`` for a way of stretching that is not known here.
    """
    found = values.mapping("rope_parameters")
    if layer_type and isinstance(found.get(layer_type), dict):
        found = found[layer_type]
    elif any(isinstance(part, dict) for part in found.values()):
        found = {}
    if not found:
        found = values.mapping("rope_scaling")
    asked = Values(found)
    kind = asked.get("rope_type", asked.get("type", "default"))
    base = asked.number("rope_theta", default=values.number("rope_theta", default=base))
    if share is not None:
        d_head = int(d_head * asked.number("partial_rotary_factor", default=share))
    return Rotary(d_head, base, **_stretching(values, kind, found))


def _stretching(values: Values, kind: object, found: Mapping[str, object]) -> dict:
    asked = Values(found)
    match kind:
        case "default" | "dynamic":  # dynamic: stretched only beyond max_position_embeddings, where nothing is read
            return {}
        case "linear":
            return {"factor": asked.number("factor")}
        case "llama3":
            length = asked.integer(
                "original_max_position_embeddings", default=values.integer("max_position_embeddings", most=2**27)
            )
            low, high = asked.number("low_freq_factor"), asked.number("high_freq_factor")
            if high <= low:
                raise CheckpointError(
                    "config.json says {name} {value}; it must be a number above {least}",
                    name="high_freq_factor",
                    value=high,
                    least=low,
                )
            return {"scaling": RotaryScaling(asked.number("factor"), low, high, length)}
    raise CheckpointError(
        "config.json stretches rotary positions by {kind}; only {known} can be read",
        kind=repr(kind),
        known="default, linear, dynamic, llama3",
    )
