"""Rotary settings of a third-party config: which channels rotate, how fast, and their scaling."""

import math
from collections.abc import Mapping

from transformer.errors import CheckpointError
from transformer.families.values import Values
from transformer.variants.partial_rotary import Rotary
from transformer.variants.rotary_scaling import (
    FactorScaling,
    LinearScaling,
    Llama3Scaling,
    LongRope,
    RotaryScaling,
    Yarn,
    pair_that_turns,
)

_LONGEST = 2**27


def rotary_of(values: Values, d_head: int, *, base: float, share: float | None = None) -> Rotary:
    """From ``rope_scaling`` (old) or ``rope_parameters`` (new); where a file has both, Hugging Face reads the old one.

    ``base``: where these do not say it. ``share``: of the channels, where a family turns a part of them; the others'
    own code does not read it. Raises ``CheckpointError`` for a way of stretching that is not known here.
    """
    found = values.mapping("rope_scaling") or values.mapping("rope_parameters")
    if "original_max_position_embeddings" in values.fields:  # beside them (Phi-3) it counts more than in them
        found = {**found, "original_max_position_embeddings": values.fields["original_max_position_embeddings"]}
    return rotary_from(values, found, d_head, base, share)


def rotary_from(
    values: Values, found: Mapping[str, object], d_head: int, base: float, share: float | None = None
) -> Rotary:
    """From the parameters ``found`` in a config; ``values`` are the whole config."""
    asked = Values(found)
    nested = [name for name, part in found.items() if isinstance(part, dict)]  # one kind of layer each
    kind = nested or asked.get("rope_type", asked.get("type", "default"))
    if share is not None:
        d_head = int(d_head * asked.number("partial_rotary_factor", default=share))
    base = asked.number("rope_theta", default=base)
    rotary = Rotary(d_head, base, _scaling(kind, asked, values, width=d_head, base=base))
    for n_positions in (1, _LONGEST + 1):
        if not (rotary.frequencies(n_positions) * rotary.attention_factor).isfinite().all():
            raise CheckpointError("config.json describes rotary positions whose angles are not finite numbers")
    return rotary


def _scaling(kind: object, asked: Values, values: Values, *, width: int, base: float) -> RotaryScaling | None:
    match kind:
        case "default" | "dynamic":  # dynamic: stretched only beyond max_position_embeddings, where nothing is read
            return None
        case "linear":
            return LinearScaling(asked.number("factor"))
        case "factors":
            return FactorScaling(asked.numbers("factors", count=(width + 1) // 2))
        case "llama3":
            low, high = asked.number("low_freq_factor"), asked.number("high_freq_factor")
            _above(low, "high_freq_factor", high)
            return Llama3Scaling(asked.number("factor"), low, high, _original_length(asked, values))
        case "yarn":
            return _yarn(asked, values, width, base)
        case "longrope":
            return _longrope(asked, values, width)
    raise CheckpointError(
        "config.json stretches rotary positions by {kind}; only {known} can be read",
        kind=repr(kind)[:80],
        known="default, linear, dynamic, llama3, yarn, longrope",
    )


def _yarn(asked: Values, values: Values, width: int, base: float) -> Yarn:
    """The bounds of the mixed part are whole pairs unless ``truncate`` is false, and lie within the head."""
    _above(1, "rope_theta", base)
    length = _original_length(asked, values)
    factor = _factor(asked, values, length)
    kept, slowed = (
        pair_that_turns(asked.number(name, default=usual), width=width, base=base, length=length)
        for name, usual in (("beta_fast", 32.0), ("beta_slow", 1.0))
    )
    if asked.flag("truncate", default=True):
        kept, slowed = math.floor(kept), math.ceil(slowed)
    kept, slowed = max(kept, 0), min(slowed, width - 1)
    if kept == slowed:
        slowed += 0.001
    usual = _temperature(factor, 1.0)
    if asked.get("mscale") and asked.get("mscale_all_dim"):
        usual = _temperature(factor, asked.number("mscale")) / _temperature(factor, asked.number("mscale_all_dim"))
    return Yarn(factor, kept, slowed, asked.number("attention_factor", default=usual))


def _temperature(factor: float, share: float) -> float:
    """√(1/t) = 0.1 ln s + 1 (Peng et al. 2023, eq. 22); ``share`` is DeepSeek's mscale."""
    return 0.1 * share * math.log(factor) + 1 if factor > 1 else 1.0


def _longrope(asked: Values, values: Values, width: int) -> LongRope:
    length = _original_length(asked, values)
    _above(1, "original_max_position_embeddings", length)
    factor = _factor(asked, values, length)
    usual = math.sqrt(1 + math.log(factor) / math.log(length)) if factor > 1 else 1.0
    short, long = (asked.numbers(name, count=(width + 1) // 2) for name in ("short_factor", "long_factor"))
    return LongRope(short, long, length, asked.number("attention_factor", default=usual))


def _original_length(asked: Values, values: Values) -> int:
    """Positions that the model was trained on before its waves were stretched."""
    return asked.integer("original_max_position_embeddings", default=_longest(values), most=_LONGEST)


def _factor(asked: Values, values: Values, length: int) -> float:
    return asked.number("factor", default=_longest(values) / length)


def _longest(values: Values) -> int:
    return values.integer("max_position_embeddings", most=_LONGEST)


def _above(least: float, name: str, value: float) -> None:
    if value <= least:
        raise CheckpointError(
            "config.json says {name} {value}; it must be a number above {least}", name=name, value=value, least=least
        )
