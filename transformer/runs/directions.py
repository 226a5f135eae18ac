"""Steering: a direction is added to the residual stream, at every position, where a layer reads it.

    x ← x + c · d        x: [position, model], d: [model]

The direction d is one of

- the difference of two prompts, mean(x of A) − mean(x of B), each mean over the positions of the prompt. "Activation
  Addition" (Turner et al. 2023, arXiv:2308.10248) also takes one pair of prompts, but subtracts and adds position by
  position, from the first one on; "Contrastive Activation Addition" (Rimsky et al. 2023, arXiv:2312.06681) averages the
  last positions of many pairs and adds the result at every position after the prompt;
- what a head writes, mean(context) W_O^(h), over the positions of a text;
- the row of the output matrix W_U that computes the logit of one token (or class).

Its control is a random direction of the same length, with a seed: a Gaussian vector scaled to ‖d‖.

Special tokens are left out of all means, and so is the first position of a decoder: it attends only to itself, and in
many models its vector is a hundred times as long as the others ("massive activations", Sun et al. 2024,
arXiv:2402.17762), so that it would outweigh them.

As text, ``C SOURCE``:

==================================================  ===========================================================
``4 prompts I love it. ||| I hate it.``             difference of two prompts
``4 head 1.self.3 of The cat sat on the mat.``      what head 3 of self-attention, layer 1, writes for a text
``4 word Paris``                                    row of W_U of a token, or of a class
``4 random 7 like prompts I love it. ||| I …``      control with seed 7, as long as the direction after "like"
==================================================  ===========================================================
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

import numpy as np

from transformer.errors import InputError, MessageError
from transformer.files.checkpoints import Checkpoint
from transformer.guests.read_out import read_out_of
from transformer.runs.decoding_strategies import Greedy
from transformer.runs.output_tokens import token_of
from transformer.runs.traces import Trace
from transformer.runs.tracing import trace
from transformer.text.message import short_repr

BETWEEN = " ||| "  # two prompts
SOURCES = ("prompts", "head", "word")
EXAMPLE = f"steer:decoder.1.residual=4 prompts I love it.{BETWEEN}I hate it."
_PATTERN = re.compile(
    r"(?P<strength>\S+) (random (?P<seed>\d{1,9}) like )?"
    rf"(prompts (?P<first>.+?){re.escape(BETWEEN)}(?P<second>.+)"
    r"|head (?P<layer>\d{1,4})\.(?P<kind>self|cross)\.(?P<head>\d{1,4}) of (?P<text>.+)"
    r"|word (?P<word>.+))",
    re.DOTALL,
)


@dataclass(frozen=True)
class Steering:
    """A strength and the source of a direction.

    Attributes:
        strength: c, by which the direction is multiplied.
        source: One of ``SOURCES``.
        texts: Two prompts, the text that the head reads, or a word.
        head: Layer, kind and index of the head, for "head".
        seed: Seed of a random direction of the same length; ``None`` for the direction itself.
    """

    strength: float
    source: str
    texts: tuple[str, ...]
    head: tuple[int, str, int] | None = None
    seed: int | None = None

    @classmethod
    def parse(cls, text: str) -> Steering:
        """Parse ``C SOURCE``.

        Raises:
            ValueError: If the text has another form, or c is not a finite number.
        """
        found = _PATTERN.fullmatch(text)
        try:
            strength = float(found["strength"]) if found else math.nan
        except ValueError:
            strength = math.nan
        if not found or not math.isfinite(strength):
            raise MessageError(f"{short_repr(text)} does not fit; write it like {EXAMPLE}")
        seed = None if found["seed"] is None else int(found["seed"])
        if found["word"]:
            return cls(strength, "word", (found["word"],), seed=seed)
        if found["text"]:
            head = int(found["layer"]), found["kind"], int(found["head"])
            return cls(strength, "head", (found["text"],), head, seed)
        return cls(strength, "prompts", (found["first"], found["second"]), seed=seed)

    def __str__(self) -> str:
        at = "" if self.head is None else "{}.{}.{} of ".format(*self.head)
        like = "" if self.seed is None else f"random {self.seed} like "
        return f"{self.strength:g} {like}{self.source} {at}{BETWEEN.join(self.texts)}"


def direction_of(checkpoint: Checkpoint, stack: str, layer: int, steering: Steering) -> np.ndarray:
    """Compute the direction d that ``steering`` describes, [model], in double precision.

    ``EditSpec.check`` checks that the model has the head, and that the stack writes the output that a word belongs to.

    Args:
        checkpoint: The model.
        stack: "encoder" or "decoder".
        layer: The layer before which the direction will be added.
        steering: What the direction is made of; its strength does not matter here.

    Raises:
        InputError: If the model cannot take a text, the word is not one token of its output, or another layer comes
            between the residual stream and W_U.
    """
    if steering.seed is not None:
        length = np.linalg.norm(direction_of(checkpoint, stack, layer, replace(steering, seed=None)))
        return random_direction(checkpoint.config.d_model, float(length), steering.seed)
    if steering.source == "prompts":
        means = [_mean_stream(checkpoint, stack, layer, text) for text in steering.texts]
        return means[0] - means[1]
    if steering.source == "head":
        return _head_output(checkpoint, stack, steering)
    return _output_row(checkpoint, stack, steering.texts[0])


def random_direction(size: int, length: float, seed: int) -> np.ndarray:
    """Return a random direction of a given length, [size]: every direction is equally probable."""
    vector = np.random.default_rng(seed).standard_normal(size)
    return vector * (length / np.linalg.norm(vector))


def ordinary_positions(read: Trace, stack: str) -> list[int]:
    """Return the positions of a stack over which means are taken.

    These are neither special tokens nor the first position of a decoder, unless nothing else is left.
    """
    tokens = read.tokens(stack)
    text = [token.index for token in tokens if not token.special]
    later = [index for index in text if index > 0 or stack == "encoder"]
    return later or text or list(range(len(tokens)))


def _read(checkpoint: Checkpoint, stack: str, text: str) -> Trace:
    """Run a text as typed, without a chat template.

    A decoder-only model reads only the text, not its continuation.
    """
    continues = checkpoint.config.has_decoder and not checkpoint.config.has_encoder
    return trace(replace(checkpoint, prompt=None), text, strategy=Greedy(1) if continues else None)


def _mean_stream(checkpoint: Checkpoint, stack: str, layer: int, text: str) -> np.ndarray:
    read = _read(checkpoint, stack, text)
    stream = read.values(f"{stack}.layers.{layer}.residual.in")  # [position, model]
    return stream[ordinary_positions(read, stack)].astype(np.float64).mean(axis=0)


def _head_output(checkpoint: Checkpoint, stack: str, steering: Steering) -> np.ndarray:
    assert steering.head is not None, "``Steering.parse`` has found one"
    layer, kind, head = steering.head
    attention = getattr(getattr(checkpoint.model, stack).layers[layer], f"{kind}_attention")
    read = _read(checkpoint, stack, steering.texts[0])
    context = read.values(f"{stack}.layers.{layer}.{kind}_attention.context")[head]  # [query, channel]
    mean = context[ordinary_positions(read, stack)].astype(np.float64).mean(axis=0)
    size = len(mean)
    projection = attention.output_projection.weight[:, head * size : (head + 1) * size]  # [model, channel]
    return projection.detach().double().numpy(force=True) @ mean


def _output_row(checkpoint: Checkpoint, stack: str, word: str) -> np.ndarray:
    config = checkpoint.config
    if config.encodes_sentences:
        raise InputError(f"{checkpoint.name} does not predict a word, so there is nothing to measure.")
    found = read_out_of(checkpoint.model, stack)
    assert found is not None, "``EditSpec.check`` has found that this stack writes the output"
    if found.has_own_layer:
        raise InputError(
            f"{checkpoint.name} has one more layer before its output matrix, so the rows of that matrix are "
            "not directions of the residual stream."
        )
    row = found.projection.weight[token_of(replace(checkpoint, prompt=None), "The", word)]  # as it continues a text
    return row.detach().double().numpy(force=True)
