"""Rotary settings of a third-party config: which channels rotate, how fast, and their scaling."""

import math
from collections.abc import Mapping

from transformer.errors import CheckpointError
from transformer.guests.config_fields import Values
from transformer.guests.partial_rotary import Rotary
from transformer.guests.rotary_scaling import (
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
    """Return the rotary settings in ``rope_scaling`` (old) or ``rope_parameters`` (new).

    Like Hugging Face's code, this reads the old key if a file has both.

    Args:
        values: The whole config.
        d_head: Width of a head.
        base: Base of the frequencies where the settings name none.
        share: Fraction of the channels that rotate, in families that rotate only a part; others ignore the setting.

    Raises:
        CheckpointError: The scaling method is unknown.
    """
    found = values.mapping("rope_scaling") or values.mapping("rope_parameters")
    if "original_max_position_embeddings" in values.fields:  # outside (Phi-3), it takes precedence
        found = {**found, "original_max_position_embeddings": values.fields["original_max_position_embeddings"]}
    return rotary_from(values, found, d_head, base, share)


def rotary_from(
    values: Values, found: Mapping[str, object], d_head: int, base: float, share: float | None = None
) -> Rotary:
    """Return the rotary settings in ``found``, a part of the config ``values``."""
    settings = Values(found)
    nested = [name for name, part in found.items() if isinstance(part, dict)]  # settings per kind of layer
    kind = nested or settings.get("rope_type", settings.get("type", "default"))
    if share is not None:
        d_head = int(d_head * settings.number("partial_rotary_factor", default=share))
    base = settings.number("rope_theta", default=base)
    rotary = Rotary(d_head, base, _scaling(kind, settings, values, width=d_head, base=base))
    for n_positions in (1, _LONGEST + 1):
        if not (rotary.frequencies(n_positions) * rotary.attention_factor).isfinite().all():
            raise CheckpointError("config.json describes rotary positions whose angles are not finite numbers")
    return rotary


def _scaling(kind: object, settings: Values, values: Values, *, width: int, base: float) -> RotaryScaling | None:
    match kind:
        case "default" | "dynamic":  # dynamic scales only beyond max_position_embeddings
            return None
        case "linear":
            return LinearScaling(settings.number("factor"))
        case "factors":
            return FactorScaling(settings.numbers("factors", count=(width + 1) // 2))
        case "llama3":
            low, high = settings.number("low_freq_factor"), settings.number("high_freq_factor")
            _above(low, "high_freq_factor", high)
            return Llama3Scaling(settings.number("factor"), low, high, _original_length(settings, values))
        case "yarn":
            return _yarn(settings, values, width, base)
        case "longrope":
            return _longrope(settings, values, width)
    raise CheckpointError(
        f"config.json stretches rotary positions by {repr(kind)[:80]}; only default, linear, dynamic, "
        "llama3, yarn, longrope can be read"
    )


def _yarn(settings: Values, values: Values, width: int, base: float) -> Yarn:
    """Return YaRN's scaling; the bounds of its ramp are integers unless ``truncate`` is false."""
    _above(1, "rope_theta", base)
    length = _original_length(settings, values)
    factor = _factor(settings, values, length)
    kept, slowed = (
        pair_that_turns(settings.number(name, default=usual), width=width, base=base, length=length)
        for name, usual in (("beta_fast", 32.0), ("beta_slow", 1.0))
    )
    if settings.flag("truncate", default=True):
        kept, slowed = math.floor(kept), math.ceil(slowed)
    kept, slowed = max(kept, 0), min(slowed, width - 1)
    if kept == slowed:
        slowed += 0.001
    usual = _temperature(factor, 1.0)
    if settings.get("mscale") and settings.get("mscale_all_dim"):
        shares = settings.number("mscale"), settings.number("mscale_all_dim")
        usual = _temperature(factor, shares[0]) / _temperature(factor, shares[1])
    return Yarn(factor, kept, slowed, settings.number("attention_factor", default=usual))


def _temperature(factor: float, share: float) -> float:
    """Return √(1/t) = 0.1 ln s + 1 (Peng et al. 2023, eq. 22); ``share`` is DeepSeek's mscale."""
    return 0.1 * share * math.log(factor) + 1 if factor > 1 else 1.0


def _longrope(settings: Values, values: Values, width: int) -> LongRope:
    length = _original_length(settings, values)
    _above(1, "original_max_position_embeddings", length)
    factor = _factor(settings, values, length)
    usual = math.sqrt(1 + math.log(factor) / math.log(length)) if factor > 1 else 1.0
    short, long = (settings.numbers(name, count=(width + 1) // 2) for name in ("short_factor", "long_factor"))
    return LongRope(short, long, length, settings.number("attention_factor", default=usual))


def _original_length(settings: Values, values: Values) -> int:
    """Return the context length of the training before the frequencies were scaled."""
    return settings.integer("original_max_position_embeddings", default=_longest(values), most=_LONGEST)


def _factor(settings: Values, values: Values, length: int) -> float:
    return settings.number("factor", default=_longest(values) / length)


def _longest(values: Values) -> int:
    return values.integer("max_position_embeddings", most=_LONGEST)


def _above(least: float, name: str, value: float) -> None:
    if value <= least:
        raise CheckpointError(f"config.json says {name} {value}; it must be a number above {least}")
