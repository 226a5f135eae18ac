"""How a foreign config says which channels are turned, how fast, and how the waves are stretched."""

from collections.abc import Mapping

from transformer.errors import CheckpointError
from transformer.families.values import Values
from transformer.variants.rotary import Rotary, RotaryScaling


def rotary_of(values: Values, d_head: int, *, base: float, share: float | None = None) -> Rotary:
    """From ``rope_scaling`` (old) or ``rope_parameters`` (new); where a file has both, Hugging Face reads the old one.

    ``base``: where these do not say it. ``share``: of the channels, where a family turns a part of them; the others'
    own code does not read it. Raises ``CheckpointError`` for a way of stretching that is not known here.
    """
    return rotary_from(values, values.mapping("rope_scaling") or values.mapping("rope_parameters"), d_head, base, share)


def rotary_from(
    values: Values, found: Mapping[str, object], d_head: int, base: float, share: float | None = None
) -> Rotary:
    """From the parameters ``found`` in a config; ``values`` are the whole config."""
    asked = Values(found)
    nested = [name for name, part in found.items() if isinstance(part, dict)]  # one kind of layer each
    kind = nested or asked.get("rope_type", asked.get("type", "default"))
    if share is not None:
        d_head = int(d_head * asked.number("partial_rotary_factor", default=share))
    return Rotary(d_head, asked.number("rope_theta", default=base), **_stretching(values, kind, found))


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
