"""A Transformer in NumPy and float64, from the weights file alone, without using ``transformer``.

``forward`` returns every number that the probes record, by the same names, from the formulas of the papers. A function
in ``changes`` is applied to the number of that name, and everything after it continues from there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

Arrays = dict[str, np.ndarray]
START, END, MASK = 1, 2, 3  # ids of special tokens; </s> ends each sentence of a pair
CHECKPOINTS = Path(__file__).resolve().parents[2] / "checkpoints"


class NumpyTransformer:
    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, np.ndarray]) -> None:
        self.config = config
        self.weights = {name: table.astype(np.float64) for name, table in weights.items()}
        self.seen: Arrays = {}
        self.changes: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {}

    @classmethod
    def read(cls, folder: Path) -> NumpyTransformer:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        return cls(config, load_file(folder / "model.safetensors"))

    def note(self, name: str, values: np.ndarray) -> np.ndarray:
        if name in self.changes:
            values = self.changes[name](values)
        self.seen[name] = values
        return values

    # ---- the parts ----------------------------------------------------------------------------------------------

    def linear(self, name: str, x: np.ndarray) -> np.ndarray:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def table(self, stack: str) -> np.ndarray:
        own = f"{stack}.embedding.table.weight"
        return self.weights[own if own in self.weights else "encoder.embedding.table.weight"]

    def embed(self, stack: str, ids: list[int]) -> np.ndarray:
        width = self.config["d_model"]
        if "patch_size" in self.config:
            token = np.stack([self.patch(id) for id in ids])
        else:
            token = np.stack([self.table(stack)[id] for id in ids]) * math.sqrt(width)
        self.seen[f"{stack}.embedding.token"] = token
        kind = self.config["positions"]
        if kind == "sinusoidal":
            position = np.empty_like(token)
            for at in range(len(ids)):
                for pair in range(width // 2):
                    angle = at / 10_000 ** (2 * pair / width)
                    position[at, 2 * pair], position[at, 2 * pair + 1] = math.sin(angle), math.cos(angle)
        elif kind == "learned":
            position = self.weights[f"{stack}.embedding.position_encoding.table"][: len(ids)]
        if kind in ("sinusoidal", "learned"):
            self.seen[f"{stack}.embedding.position"] = position
            token = token + position
        if self.config.get("n_segments"):
            segment = np.stack([self.weights[f"{stack}.embedding.segment_table.weight"][n] for n in self.segments(ids)])
            self.seen[f"{stack}.embedding.segment"] = segment
            token = token + segment
        self.seen[f"{stack}.embedding.sum"] = token
        return token

    def segments(self, ids: list[int]) -> list[int]:
        """Return 0 for each token up to the first ``</s>`` and for padding, 1 for each token after it."""
        first = ids.index(END)
        return [int(at > first and id != self.config["pad_id"]) for at, id in enumerate(ids)]

    def patch(self, id: int) -> np.ndarray:
        """Return a special token's own vector, or E · pixels + b; the pixels are the digits of the id."""
        special = self.weights["encoder.embedding.table.special.weight"]
        if id < len(special):
            return special[id]
        levels, pixels, number = self.config["n_levels"], [], id - len(special)
        for _ in range(self.config["patch_size"] ** 2):
            number, level = divmod(number, levels)
            pixels.insert(0, level / (levels - 1))
        return self.linear("encoder.embedding.table.projection", np.array([pixels]))[0]

    def norm(self, name: str, x: np.ndarray) -> np.ndarray:
        x = self.note(f"{name}.input", x)
        if self.config.get("rms_norm"):  # no mean is subtracted, and there is no β
            mean_square = (x**2).mean(axis=-1)
            normalized = x / np.sqrt(mean_square + self.config["layer_norm_epsilon"])[:, None]
            output = normalized * self.weights[f"{name}.weight"]
            parts = {"mean_square": mean_square, "normalized": normalized, "output": output}
            self.seen |= {f"{name}.{part}": values for part, values in parts.items()}
            return output
        mean = x.mean(axis=-1)
        std = np.sqrt(((x - mean[:, None]) ** 2).mean(axis=-1) + self.config["layer_norm_epsilon"])
        normalized = (x - mean[:, None]) / std[:, None]
        output = normalized * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
        parts = {"mean": mean, "std": std, "normalized": normalized, "output": output}
        self.seen |= {f"{name}.{part}": values for part, values in parts.items()}
        return output

    def heads(self, x: np.ndarray) -> np.ndarray:
        n = self.config["n_heads"]
        width = x.shape[1] // n
        return np.stack([x[:, head * width : (head + 1) * width] for head in range(n)])

    def rotate(self, heads: np.ndarray) -> np.ndarray:
        """Rotate the point (channel i, channel i + d/2) by position · 10000^(−2i/d)."""
        if self.config["positions"] != "rotary":
            return heads
        turned, half = np.empty_like(heads), heads.shape[-1] // 2
        for at in range(heads.shape[1]):
            for i in range(half):
                angle = at * 10_000 ** (-i / half)
                x, y = heads[:, at, i], heads[:, at, i + half]
                turned[:, at, i] = x * math.cos(angle) - y * math.sin(angle)
                turned[:, at, i + half] = y * math.cos(angle) + x * math.sin(angle)
        return turned

    def bias(self, stack: str, n_tokens: int) -> np.ndarray | None:
        """Return T5's bias of self-attention scores: one number per head and bucket of distances."""
        if self.config["positions"] != "relative":
            return None
        table = self.weights[f"{stack}.position_bias.table"]
        values = np.empty((len(table), n_tokens, n_tokens))
        for query, key in np.ndindex(n_tokens, n_tokens):
            values[:, query, key] = table[:, self.bucket(key - query, table.shape[1], causal=stack == "decoder")]
        self.seen[f"{stack}.position_bias.values"] = values
        return values

    @staticmethod
    def bucket(distance: int, n_buckets: int, *, causal: bool) -> int:
        """Return the bucket of each distance: one per small distance, wider ones up to 128 tokens."""
        first = 0
        if causal:
            distance = max(0, -distance)  # later tokens are masked
        else:
            n_buckets //= 2
            first, distance = n_buckets * (distance > 0), abs(distance)
        exact = n_buckets // 2
        if distance < exact:
            return first + distance
        wider = exact + int(math.log(distance / exact) / math.log(128 / exact) * (n_buckets - exact))
        return first + min(wider, n_buckets - 1)

    def attention(
        self, name: str, x: np.ndarray, memory: np.ndarray, allowed: np.ndarray, bias: np.ndarray | None = None
    ) -> np.ndarray:
        query = self.heads(self.linear(f"{name}.query_projection", x))
        key = self.heads(self.linear(f"{name}.key_projection", memory))
        if name.endswith(".self_attention"):  # positions of two texts have no distance
            query, key = self.rotate(query), self.rotate(key)
        value = self.heads(self.linear(f"{name}.value_projection", memory))
        allowed = self.note(f"{name}.allowed", allowed)
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
        if bias is not None:
            scores = scores + bias
        weights = np.zeros_like(scores)
        for head, row in np.ndindex(scores.shape[:2]):
            seen = np.flatnonzero(allowed[row])
            if not len(seen):
                continue  # no allowed key: the head's output is 0
            powers = np.exp(scores[head, row, seen] - scores[head, row, seen].max())
            weights[head, row, seen] = powers / powers.sum()
        weights = self.note(f"{name}.weights", weights)
        context = self.note(f"{name}.context", weights @ value)
        parts = {"query": query, "key": key, "value": value, "scores": scores}
        self.seen |= {f"{name}.{part}": values for part, values in parts.items()}
        output = self.linear(f"{name}.output_projection", np.concatenate(list(context), axis=1))
        return self.note(f"{name}.output", output)

    def feed_forward(self, name: str, x: np.ndarray) -> np.ndarray:
        before = self.linear(f"{name}.input_projection", x)
        if self.config["activation"] == "relu":
            hidden = np.where(before > 0, before, 0.0)
        else:  # GELU: x · Φ(x)
            hidden = before * 0.5 * (1 + np.vectorize(math.erf)(before / math.sqrt(2)))
        output = self.linear(f"{name}.output_projection", hidden)
        self.seen |= {f"{name}.pre_activation": before, f"{name}.hidden": hidden}
        return self.note(f"{name}.output", output)

    # ---- the whole ----------------------------------------------------------------------------------------------

    def stack(self, stack: str, ids: list[int], memory: np.ndarray | None, real: np.ndarray | None) -> np.ndarray:
        """Run a decoder stack; ``memory`` is the encoder's output, and ``real`` marks unpadded tokens."""
        x = self.embed(stack, ids)
        present = np.array([id != self.config["pad_id"] for id in ids])
        allowed = np.broadcast_to(present, (len(ids), len(ids)))
        if stack == "decoder":
            allowed = np.tril(np.ones((len(ids), len(ids)), dtype=bool)) & allowed
        bias = self.bias(stack, len(ids))
        pre = self.config["norm"] == "pre"

        def add(x: np.ndarray, name: str, sublayer: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
            """Return x + f(norm(x)), or norm(x + f(x)) as in the paper of 2017."""
            return x + sublayer(self.norm(f"{name}_norm", x)) if pre else self.norm(f"{name}_norm", x + sublayer(x))

        for layer in range(self.config[f"n_{stack}_layers"]):
            name = f"{stack}.layers.{layer}"
            x = self.note(f"{name}.residual.in", x)
            own = f"{name}.self_attention"
            x = add(x, own, lambda x, own=own: self.attention(own, x, x, allowed, bias))
            x = self.note(f"{name}.residual.after_self_attention", x)
            if memory is not None:
                across, other = np.broadcast_to(real, (len(ids), len(real))), f"{name}.cross_attention"
                x = add(x, other, lambda x, other=other, across=across: self.attention(other, x, memory, across))
                x = self.note(f"{name}.residual.after_cross_attention", x)
            last = f"{name}.feed_forward"
            x = add(x, last, lambda x, last=last: self.feed_forward(last, x))
            x = self.note(f"{name}.residual.out", x)
        return self.norm(f"{stack}.final_norm", x) if pre else x

    def forward(
        self,
        source: list[int] | None,
        target: list[int] | None,
        changes: Mapping[str, Callable[[np.ndarray], np.ndarray]] | None = None,
    ) -> Arrays:
        """Return every activation of one pass by name."""
        self.seen, self.changes = {}, changes or {}
        memory = real = None
        if source is not None:
            memory = self.stack("encoder", source, None, None)
            real = np.array([id != self.config["pad_id"] for id in source])
        if target is not None:
            hidden, stack = self.stack("decoder", target, memory, real), "decoder"
        else:
            hidden, stack = memory, "encoder"
        if self.config["class_names"]:
            if "patch_size" in self.config:
                pooled = np.tanh(self.linear("classifier.dense", hidden[:1])[0])
            else:
                pooled = hidden[real].mean(axis=0)
            self.seen["classifier.pooled"] = pooled
            self.seen["classifier.logits"] = self.linear("classifier.projection", pooled[None])[0]
        else:
            own = self.weights.get(f"{stack}.vocabulary_projection.weight", self.table(stack))
            self.seen[f"{stack}.logits"] = hidden @ own.T
            if self.config.get("n_segments"):
                pooled = np.tanh(self.linear("next_sentence.dense", hidden[:1])[0])
                self.seen["next_sentence.pooled"] = pooled
                self.seen["next_sentence.logits"] = self.linear("next_sentence.projection", pooled[None])[0]
        return self.seen


by_hand = cache(lambda name: NumpyTransformer.read(CHECKPOINTS / name))


def compare(found: Mapping[str, Any], expected: Arrays) -> None:
    """Check that two passes have the same names, and the same numbers within the rounding of float32."""
    assert set(found) == set(expected)
    for name, activation in found.items():
        scale = max(1.0, float(np.abs(expected[name]).max()))
        np.testing.assert_allclose(activation.values, expected[name], rtol=0, atol=2e-5 * scale, err_msg=name)
