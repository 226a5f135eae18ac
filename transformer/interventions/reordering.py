"""The same tokens at other positions or without any: which may move, what the model then predicts.

>>> import transformer
>>> from transformer.interventions.reordering import new_order, reordered_trace
>>> trace = transformer.trace(transformer.load("checkpoints/en-fr-2017"), "Tom loves Mary.")
>>> print(trace.text, "|", reordered_trace(trace, new_order(trace, "swap", pair=(0, 2))).text)
Tom aime Mary. | Mary aime Tom.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from transformer.config import ModelConfig
from transformer.interventions.experiment import same_tokens
from transformer.layers.positional_encodings import reordered_positions, without_positions
from transformer.predictions.answer_probabilities import prediction_rows
from transformer.probes import Edit
from transformer.runs.inputs import prompt_ids
from transformer.runs.traces import Trace
from transformer.runs.tracing import trace_of
from transformer.text.tokens import Token

REORDERED = ("sinusoidal", "learned", "rotary", "relative", "alibi")


class AttentionChange(NamedTuple):
    """What one token attends to in one head, before and after a change: [token] each."""

    head: int
    before: np.ndarray
    after: np.ndarray


def input_stack(config: ModelConfig) -> str:
    """Return the stack that reads the typed text."""
    return "encoder" if config.has_encoder else "decoder"


def can_reorder(config: ModelConfig) -> bool:
    """Return whether this model's positions can be changed independently of its tokens."""
    kinds = config.kinds_in(input_stack(config))
    return len(kinds) == 1 and kinds[0] in REORDERED


def input_tokens(trace: Trace) -> tuple[Token, ...]:
    """Return the tokens of the input; in a decoder, those of the prompt."""
    tokens = trace.tokens(input_stack(trace.checkpoint.config)).tokens
    if trace.checkpoint.config.has_encoder:
        return tokens
    return tokens[: len(prompt_ids(trace.checkpoint, trace.sentence))]


def movable(trace: Trace) -> list[int]:
    """Return the positions of tokens that may move: all but special ones."""
    return [token.index for token in input_tokens(trace) if not token.special]


def new_order(trace: Trace, change: str, *, pair: tuple[int, int], shuffle: int = 0) -> tuple[int, ...] | None:
    """Return the new position of each token of the input; ``None`` if positions are removed.

    Args:
        trace: The run with the original positions.
        change: "swap", "shuffle", "reverse", "remove", or "remove_all" (in the decoder, too).
        pair: The tokens that "swap" exchanges.
        shuffle: The seed of "shuffle".
    """
    if change.startswith("remove"):
        return None
    order, places = np.arange(len(input_tokens(trace))), np.array(movable(trace))
    if change == "swap":
        order[list(pair)] = order[list(pair)[::-1]]
    elif change == "reverse":
        order[places] = places[::-1]
    else:
        order[places] = np.random.default_rng(shuffle).permutation(places)
    return tuple(order.tolist())


def position_edits(trace: Trace, order: Sequence[int] | None, *, everywhere: bool = False) -> tuple[Edit, ...]:
    """Return the edits that give the input these positions, or that remove all, perhaps in every stack."""
    model, own = trace.checkpoint.model, input_stack(trace.checkpoint.config)
    if order is not None:
        return reordered_positions(model, own, order)
    return tuple(edit for stack in (trace.stacks if everywhere else (own,)) for edit in without_positions(model, stack))


def reordered_trace(trace: Trace, order: Sequence[int] | None, *, everywhere: bool = False) -> Trace:
    """Return the run with the input at these positions, or without positions, and its own output.

    Args:
        trace: The run with the original positions.
        order: The new position of each token of the input.
        everywhere: Whether every stack loses its positions, if ``order`` is ``None``.

    Raises:
        NotFiniteError: If the activations are not finite.
    """
    changed = trace_of(replace(trace.run, edits=position_edits(trace, order, everywhere=everywhere)))
    changed.check_finite()
    return changed


def text_probabilities(trace: Trace, order: Sequence[int] | None) -> tuple[float, float] | None:
    """Return how probable a typed text is per token, at its own positions and at others.

    ``None`` for a text that the model continues, and for a model that does not continue texts.
    """
    question = prediction_rows(trace)
    if not question.everywhere or not trace.checkpoint.config.has_decoder:
        return None
    runs = trace, same_tokens(trace, position_edits(trace, order))
    before, after = (math.exp(question.chosen(question.log_probabilities(one)).mean()) for one in runs)
    return before, after


def attention_change(before: Trace, after: Trace, token: int) -> AttentionChange:
    """Return a token's attention in the first layer, in the head in which most weight has moved.

    With a causal mask, the row ends with the token itself.
    """
    stack = input_stack(before.checkpoint.config)
    n_keys = token + 1 if stack == "decoder" else len(input_tokens(before))
    first, second = (one.attention(stack, 0, "self").weights[:, token, :n_keys] for one in (before, after))
    head = int(np.abs(first.astype(np.float64) - second).sum(axis=1).argmax())
    return AttentionChange(head, first[head], second[head])


def distant_words(trace: Trace, task_prefix: str = "") -> tuple[int, int]:
    """Return two words that are far apart: whole, long and unrepeated ones if there are any.

    ``task_prefix`` is what was added before the reader's text, e.g. "translate English to French:".
    """
    places, tokens = movable(trace), input_tokens(trace)
    read = np.cumsum([0, *(0 if token.special else len(token.text) for token in tokens)])
    own = [index for index in places if read[index] >= len(task_prefix)]
    words = [index for index in own if any(letter.isalnum() for letter in tokens[index].text)]
    # Neither "the" nor "on" if possible: a word of at least three letters that occurs only once.
    spelt = {index: tokens[index].text.strip().lower() for index in words}
    long = [index for index in words if len(spelt[index]) > 2 and list(spelt.values()).count(spelt[index]) == 1]
    whole = [index for index in long if _is_whole_word(tokens, index, first=places[0])]
    found = next(group for group in (whole, long, words, places) if len(group) >= 2)
    one = found[0] if len(found) < 4 else found[1]
    others = [index for index in found if tokens[index].id != tokens[one].id]
    other = max(others or found)
    return min(one, other), max(one, other)


def _is_whole_word(tokens: Sequence[Token], index: int, *, first: int) -> bool:
    """Return whether a token begins a word that no later token continues."""
    begins = index == first or tokens[index].text[:1].isspace()
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    return begins and (after is None or after.special or not after.text[:1].isalnum())
