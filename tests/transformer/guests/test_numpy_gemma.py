"""A model with windows, soft caps and shared key heads, recomputed in NumPy from its weights file.

Gemma 2 (2024, §2): the reference uses neither ``transformer`` nor Hugging Face's code.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

import transformer


def rms_norm(x: np.ndarray, weight: np.ndarray, epsilon: float) -> np.ndarray:
    """Apply RMSNorm with the stored weight, which is γ − 1."""
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + epsilon) * (1 + weight)


def turned(x: np.ndarray, base: float) -> np.ndarray:
    """Apply rotary positions to [head, position, channel], pairing the two halves of the channels."""
    half = x.shape[-1] // 2
    angle = np.arange(x.shape[1])[:, None] * base ** (-np.arange(half) / half)
    first, second = x[..., :half], x[..., half:]
    return np.concatenate(
        (first * np.cos(angle) - second * np.sin(angle), second * np.cos(angle) + first * np.sin(angle)), axis=-1
    )


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def by_hand(folder: Path, ids: list[int]) -> dict[str, np.ndarray]:
    """Return the compared numbers of one pass by their names in the trace."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    weights = {name: table.astype(np.float64) for name, table in load_file(folder / "model.safetensors").items()}
    n_heads, n_key_heads, width = (
        config[f"{part}"] for part in ("num_attention_heads", "num_key_value_heads", "head_dim")
    )
    epsilon, cap, length = config["rms_norm_eps"], config["attn_logit_softcapping"], len(ids)
    table = weights["model.embed_tokens.weight"]
    stream, seen = table[ids] * np.sqrt(config["hidden_size"]), {}
    query, key = np.arange(length)[:, None], np.arange(length)[None, :]
    for layer, kind in enumerate(config["layer_types"]):
        of, place = f"model.layers.{layer}.", f"decoder.layers.{layer}."

        def norm(name: str, x: np.ndarray, of: str = of) -> np.ndarray:
            return rms_norm(x, weights[f"{of}{name}_layernorm.weight"], epsilon)

        def linear(name: str, x: np.ndarray, of: str = of) -> np.ndarray:
            return x @ weights[f"{of}{name}_proj.weight"].T

        x = norm("input", stream)
        heads = {
            name: linear(f"self_attn.{name}", x).reshape(length, -1, width).swapaxes(0, 1) for name in ("q", "k", "v")
        }
        base = config["rope_parameters"]["rope_theta"]
        keys, values = (
            np.repeat(part, n_heads // n_key_heads, axis=0) for part in (turned(heads["k"], base), heads["v"])
        )
        scores = turned(heads["q"], base) @ keys.swapaxes(1, 2) / np.sqrt(config["query_pre_attn_scalar"])
        scores = cap * np.tanh(scores / cap)
        allowed = key <= query
        if kind == "sliding_attention":
            allowed = allowed & (query - key < config["sliding_window"])
        powers = np.exp(scores) * allowed
        weight = powers / powers.sum(axis=-1, keepdims=True)
        context = weight @ values
        written = linear("self_attn.o", context.swapaxes(0, 1).reshape(length, -1))
        stream = stream + norm("post_attention", written)
        x = norm("pre_feedforward", stream)
        hidden = gelu(linear("mlp.gate", x)) * linear("mlp.up", x)
        stream = stream + norm("post_feedforward", linear("mlp.down", hidden))
        seen |= {
            f"{place}self_attention.weights": weight,
            f"{place}self_attention.allowed": allowed,
            f"{place}self_attention.context": context,
            f"{place}feed_forward.hidden": hidden,
            f"{place}residual.out": stream,
        }
    logits = rms_norm(stream, weights["model.norm.weight"], epsilon) @ table.T
    final = config["final_logit_softcapping"]
    return {**seen, "decoder.logits": final * np.tanh(logits / final)}


def test_windows_and_soft_caps_are_those_of_the_formulas(guest: Callable) -> None:
    checkpoint = guest("hf-gemma2")
    trace = transformer.trace(checkpoint, "The cat sat on the mat, and the dog slept under the old table.")
    ids = list(trace.target.ids)
    expected = by_hand(checkpoint.path, ids)
    windowed, whole = (expected[f"decoder.layers.{layer}.self_attention.allowed"] for layer in (0, 1))
    assert len(ids) > 20 and windowed.sum() < whole.sum(), "the text is longer than the window"
    for name, wanted in expected.items():
        scale = max(1.0, float(np.abs(wanted).max()))
        np.testing.assert_allclose(trace.values(name), wanted, rtol=0, atol=2e-5 * scale, err_msg=name)
