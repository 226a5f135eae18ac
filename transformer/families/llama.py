"""Llama and its successors: RMSNorm, rotary positions, gated feed-forward layers, shared key heads.

Llama (Touvron et al. 2023), Mistral (Jiang et al. 2023), Qwen2 (Yang et al. 2024), Qwen3 (Yang et al. 2025),
Gemma 1–3 (Gemma Team 2024, 2024, 2025).
"""

from collections.abc import Callable

from transformer.errors import CheckpointError
from transformer.families.family import Family
from transformer.families.family_config import FamilyConfig
from transformer.families.rope import rotary_from, rotary_of
from transformer.families.values import Values
from transformer.families.weights import Table, linear, stored

FULL, SLIDING = "full_attention", "sliding_attention"


def _config(values: Values, family: str, **changes: object) -> FamilyConfig:
    """Return the config that all of them share, with the fields in ``changes`` replaced."""
    width, n_heads = values.integer("hidden_size"), values.integer("num_attention_heads")
    n_layers = values.integer("num_hidden_layers", most=256)
    d_head = changes.pop("head_width", None) or values.integer("head_dim", default=width // n_heads)
    base = values.number("rope_theta", default=10_000.0)
    rotary = changes.pop("rotary", None) or (rotary_of(values, d_head, base=base),) * n_layers
    return FamilyConfig(
        **{
            "family": family,
            "kind": "decoder-only",
            "vocabulary_size": values.integer("vocab_size"),
            "d_model": width,
            "n_heads": n_heads,
            "d_ff": values.integer("intermediate_size"),
            "n_encoder_layers": 0,
            "n_decoder_layers": n_layers,
            "max_length": values.length("max_position_embeddings", default=2048),
            "positions": "rotary",
            "norm": "pre",
            "activation": values.activation("hidden_act", default="silu"),
            "layer_norm_epsilon": values.number("rms_norm_eps", default=1e-6),
            "head_width": d_head,
            "n_key_heads": values.integer("num_key_value_heads", default=n_heads),
            "query_bias": False,
            "output_bias": False,
            "feed_forward_bias": False,
            "gated": True,
            "rms_norm": True,
            "final_norm": True,
            "rotary": rotary,
            **changes,
        }
    )


def llama_config(values: Values) -> FamilyConfig:
    """Read the config of a Llama model."""
    bias = values.flag("attention_bias", default=False)
    return _config(
        values,
        "llama",
        query_bias=bias,
        output_bias=bias,
        feed_forward_bias=values.flag("mlp_bias", default=False),
    )


def mistral_config(values: Values) -> FamilyConfig:
    """Read the config of a Mistral model."""
    n_layers = values.integer("num_hidden_layers", most=256)
    window = _window(values) if _names_window(values) else None
    return _config(
        values,
        "mistral",
        windows=(window,) * n_layers,
        n_key_heads=_key_heads(values, 8),
    )


def _key_heads(values: Values, usual: int) -> int:
    """Return the number of key heads: null means that of the query heads, a missing field a default."""
    if "num_key_value_heads" in values.fields:
        usual = values.integer("num_attention_heads")
    return values.integer("num_key_value_heads", default=usual)


def _names_window(values: Values) -> bool:
    """Whether the config sets a window: null means none, a missing field the first model's window."""
    return values.fields.get("sliding_window", 4096) is not None


def _window(values: Values) -> int:
    return values.integer("sliding_window", default=4096, most=2**27)


def qwen2_config(values: Values) -> FamilyConfig:
    """Read the config of a Qwen2 model."""
    width, n_heads = values.integer("hidden_size"), values.integer("num_attention_heads")
    return _config(
        values,
        "qwen2",
        head_width=values.integer("head_dim", default=width // n_heads),
        query_bias=True,
        windows=_qwen_windows(values),
        n_key_heads=_key_heads(values, 32),
    )


def qwen3_config(values: Values) -> FamilyConfig:
    """Read the config of a Qwen3 model."""
    bias = values.flag("attention_bias", default=False)
    return _config(
        values,
        "qwen3",
        head_width=values.integer("head_dim", default=128),
        query_bias=bias,
        output_bias=bias,
        query_key_norm=True,
        windows=_qwen_windows(values),
        n_key_heads=_key_heads(values, 32),
    )


def _qwen_windows(values: Values) -> tuple[int | None, ...]:
    """Return windows per layer: with ``use_sliding_window``, layers from ``max_window_layers`` on."""
    n_layers = values.integer("num_hidden_layers", most=256)
    if not values.flag("use_sliding_window", default=False) or not _names_window(values):
        return ()
    first = values.integer("max_window_layers", default=28, least=0)
    return _windows(values, n_layers, lambda index: SLIDING if index >= first else FULL)


def _windows(values: Values, n_layers: int, usual: Callable[[int], str]) -> tuple[int | None, ...]:
    window = _window(values)
    return tuple(window if kind == SLIDING else None for kind in _layer_types(values, n_layers, usual))


def _layer_types(values: Values, n_layers: int, usual: Callable[[int], str]) -> list[str]:
    kinds = values.get("layer_types") or [usual(index) for index in range(n_layers)]
    if not isinstance(kinds, list) or len(kinds) != n_layers or not set(map(str, kinds)) <= {FULL, SLIDING}:
        raise CheckpointError(
            f"config.json says layer_types {repr(kinds)[:80]}; it must name {FULL} or {SLIDING} for each of "
            f"{n_layers} layers"
        )
    return kinds


def gemma_config(values: Values) -> FamilyConfig:
    """Read the config of a Gemma 1 model."""
    # The first Gemma configs name "gelu" but mean the tanh approximation.
    activation = values.activation("hidden_act", default="gelu_pytorch_tanh")
    return _gemma(values, "gemma", activation="gelu_tanh" if activation == "gelu" else activation)


def gemma2_config(values: Values) -> FamilyConfig:
    """Read the config of a Gemma 2 model."""
    n_layers = values.integer("num_hidden_layers", most=256)
    return _gemma(
        values,
        "gemma2",
        activation=values.activation("hidden_activation", default="gelu_pytorch_tanh"),
        windows=_windows(values, n_layers, lambda index: FULL if index % 2 else SLIDING),
        **_sandwich(values, n_layers),
    )


def gemma3_config(values: Values) -> FamilyConfig:
    """Read the config of a Gemma 3 model that reads only text."""
    n_layers = values.integer("num_hidden_layers", most=256)
    pattern = values.integer("sliding_window_pattern", "_sliding_window_pattern", default=6)
    kinds = _layer_types(values, n_layers, lambda index: SLIDING if (index + 1) % pattern else FULL)
    d_head = values.integer("head_dim", default=256)
    # Layers with full attention use a larger base. Old configs scale only their rotation and name the method
    # ``rope_type``; like Hugging Face's code, this ignores the even older key ``type``.
    parameters = Values(values.mapping("rope_parameters") or {FULL: {"rope_type": "default"}})
    full = {**parameters.mapping(FULL), **values.mapping("rope_scaling")}
    full.pop("truncate", None)  # Hugging Face does not read it for a single kind of layer
    bases = {
        FULL: rotary_from(values, full, d_head, values.number("rope_theta", default=1e6)),
        SLIDING: rotary_from(
            values, parameters.mapping(SLIDING), d_head, values.number("rope_local_base_freq", default=1e4)
        ),
    }
    window = _window(values)
    return _gemma(
        values,
        "gemma3",
        activation=values.activation("hidden_activation", default="gelu_pytorch_tanh"),
        windows=tuple(window if kind == SLIDING else None for kind in kinds),
        rotary=tuple(bases[kind] for kind in kinds),
        query_key_norm=True,
        **_sandwich(values, n_layers, caps=False),
    )


def gemma3_parts_config(values: Values) -> FamilyConfig:
    """Return the config of the text model in a Gemma 3 that also reads images."""
    text = dict(values.mapping("text_config"))
    return gemma3_config(Values({"vocab_size": 262_208, **text}))


def _gemma(values: Values, family: str, **changes: object) -> FamilyConfig:
    values.only("use_bidirectional_attention", False)
    bias = values.flag("attention_bias", default=False)
    width = values.integer("hidden_size")
    default = {"gemma": 16}.get(family, 4)
    return _config(
        values,
        family,
        head_width=values.integer("head_dim", default=256),
        n_key_heads=values.integer("num_key_value_heads", default=default),
        query_bias=bias,
        output_bias=bias,
        embedding_scale=width**0.5,
        **changes,
    )


def _sandwich(values: Values, n_layers: int, *, caps: bool = True) -> dict[str, object]:
    """Return the caps of Gemma 2 (both unless null) or of Gemma 3 (of the logits, if set)."""

    def cap(name: str, usual: float) -> float | None:
        value = values.fields.get(name, usual if caps else None)
        return None if value is None else Values({name: value}).number(name)

    scale = values.number("query_pre_attn_scalar", default=256.0) ** -0.5
    return {
        "block": "sandwich",
        "attention_scale": (scale,) * n_layers,
        "score_cap": cap("attn_logit_softcapping", 50.0) if caps else None,
        "logit_cap": cap("final_logit_softcapping", 30.0),
    }


def table(config: FamilyConfig) -> Table:
    """Map our tensors to the stored ones."""
    # Gemma stores γ − 1.
    norm = (lambda weight: weight + 1.0) if config.family.startswith("gemma") else None
    rows = {
        "decoder.embedding.table.weight": stored("embed_tokens.weight"),
        "decoder.vocabulary_projection.weight": stored("lm_head.weight"),
        "decoder.final_norm.weight": stored("norm.weight", view=norm),
    }
    second = "pre_feedforward_layernorm" if config.block == "sandwich" else "post_attention_layernorm"
    for index in range(config.n_decoder_layers):
        ours, theirs = f"decoder.layers.{index}", f"layers.{index}"
        norms = {
            "self_attention_norm": "input_layernorm",
            "feed_forward_norm": second,
            "self_attention_output_norm": "post_attention_layernorm",
            "feed_forward_output_norm": "post_feedforward_layernorm",
            "self_attention.query_norm": "self_attn.q_norm",
            "self_attention.key_norm": "self_attn.k_norm",
        }
        rows |= {
            f"{ours}.{mine}.weight": stored(f"{theirs}.{other}.weight", view=norm) for mine, other in norms.items()
        }
        for part, short in (("query", "q"), ("key", "k"), ("value", "v"), ("output", "o")):
            rows |= linear(f"{ours}.self_attention.{part}_projection", f"{theirs}.self_attn.{short}_proj")
        for part, short in (("gate", "gate"), ("input", "up"), ("output", "down")):
            rows |= linear(f"{ours}.feed_forward.{part}_projection", f"{theirs}.mlp.{short}_proj")
    return rows


def _family(config: Callable[[Values], FamilyConfig], *, tied: bool) -> Family:
    prefixes = ("model.", "language_model.")
    return Family(config, table, prefixes, ("embed_tokens.weight",), ("lm_head.weight",), tied_by_default=tied)


LLAMA, MISTRAL = _family(llama_config, tied=False), _family(mistral_config, tied=False)
QWEN2, QWEN3 = _family(qwen2_config, tied=False), _family(qwen3_config, tied=False)
GEMMA, GEMMA2 = _family(gemma_config, tied=True), _family(gemma2_config, tied=True)
GEMMA3, GEMMA3_PARTS = _family(gemma3_config, tied=True), _family(gemma3_parts_config, tied=True)
