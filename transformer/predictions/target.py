"""The number that an analysis explains: a token or class of the output, its position, its probability."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from transformer.files.checkpoints import Checkpoint
from transformer.guests.read_out import read_out_of
from transformer.masks import padding_mask
from transformer.models import Model
from transformer.runs.decoding_state import writable
from transformer.runs.traces import Trace
from transformer.text.tokens import TokenSequence

QUANTITIES = ("log_probability", "probability", "logit")


@dataclass(frozen=True)
class Target:
    """A function F of the logits at one position: how probable one token (or class) is.

    Attributes:
        stack: The stack whose residual stream is read out.
        position: Position of the prediction; ``None`` for a classifier.
        rows: Positions whose residual streams are read out: one, or all real ones in a classifier that averages them.
        token: An id of the vocabulary, or a class.
        display: Text of the token.
        read: Tokens by the stack that reads them, the encoder first; those of the decoder up to ``position``, since the
            rest is hidden from it.
        of: One of ``QUANTITIES``.
        against: The alternative token, whose logit is subtracted from a logit; ``None`` for none.
    """

    stack: str
    position: int | None
    rows: tuple[int, ...]
    token: int
    display: str
    read: Mapping[str, TokenSequence]
    of: str = "logit"
    against: int | None = None

    @property
    def logits(self) -> str:
        """Name of the activation that holds the prediction."""
        return "classifier.logits" if self.position is None else f"{self.stack}.logits"

    @property
    def row(self) -> int:
        """Row of the logits; 0 for a classifier."""
        return self.position or 0


def target_of(
    trace: Trace, position: int | None = None, *, token: int | None = None, against: int | None = None
) -> Target:
    """Return the logit of ``token``, by default the most likely one, at a position of a trace.

    Args:
        trace: The recorded pass.
        position: Index among the decoder's tokens, where row t predicts the token after t; in a masked-token model,
            index among the sentence's tokens; ``None`` for a classifier.
        token: An id, or a class.
        against: An alternative token, whose logit is subtracted.

    Raises:
        ValueError: If the position or the token does not exist, or the position is padding.
    """
    checkpoint, stack = trace.checkpoint, lens_stack(trace.checkpoint)
    tokens = trace.tokens(stack)
    if checkpoint.config.n_classes:
        if position is not None:
            raise ValueError(f"position is {position}, but a classifier answers for the whole sentence; leave it out")
        rows, logits = (0,), trace.values("classifier.logits")
        if (found := read_out_of(checkpoint.model, stack)) is not None and found.kind == "mean":
            real = padding_mask(torch.tensor(tokens.ids), checkpoint.config.pad_id)
            rows = tuple(torch.nonzero(real)[:, 0].tolist())
    else:
        if position is None or not 0 <= position < len(tokens):
            raise ValueError(f"position is {position}; the {stack} read the positions 0 to {len(tokens) - 1}")
        if stack == "encoder" and tokens[position].is_padding:
            raise ValueError(f"position {position} is padding, of which nothing is asked; choose a token")
        rows, logits = (position,), trace.values(f"{stack}.logits")[position]
    token = int(logits.argmax()) if token is None else token
    for id in (token, against):
        if id is not None and not 0 <= id < len(logits):
            raise ValueError(f"there is no token {id}; this model has {len(logits)}, counted from 0")
    read = {stack: trace.tokens(stack) for stack in trace.stacks}
    if "decoder" in read:
        read["decoder"] = TokenSequence(read["decoder"].tokens[: rows[0] + 1], read["decoder"].name)
    return Target(stack, position, rows, token, shown_word(checkpoint, token), read, against=against)


def quantity_of(trace: Trace, *, row: int = 0, of: str = "log_probability") -> Target:
    """Return how probable the predicted token (or class) in ``trace`` is, as one of ``QUANTITIES``.

    Args:
        trace: The run.
        row: For a decoder the index of the token whose next token is predicted, for a masked-token model the position;
            0 for a classifier.
        of: One of ``QUANTITIES``.

    Raises:
        ValueError: If the row does not exist.
    """
    if of not in QUANTITIES:
        raise ValueError(f"of is {of!r}; choose one of {', '.join(QUANTITIES)}")
    if trace.checkpoint.config.n_classes:
        return replace(target_of(trace, row or None), of=of)
    written = trace.prediction[row].id if 0 <= row < len(trace.prediction) else None
    return replace(target_of(trace, row, token=written), of=of)


def lens_stack(checkpoint: Checkpoint) -> str:
    """Return the stack that can be read out as words or classes, which is never a translation encoder."""
    return "decoder" if checkpoint.config.has_decoder else "encoder"


def shown_word(checkpoint: Checkpoint, id: int) -> str:
    """Return the text of a token of the vocabulary, or of a class."""
    config = checkpoint.config
    return config.class_names[id] if config.n_classes else checkpoint.tokenizer.display(id)


def number_of(checkpoint: Checkpoint, target: Target, logits: Tensor) -> Tensor:
    """Compute F, [batch], from logits of its row, [batch, class] or [batch, vocabulary].

    A token that is never generated is excluded from a probability unless it is what F is about.
    """
    if target.of != "logit":
        logits = log_probabilities(checkpoint, logits, known=target.token)
    found = logits[:, target.token]
    return found.exp() if target.of == "probability" else found


def log_probabilities(checkpoint: Checkpoint, logits: Tensor, *, known: int | None = None) -> Tensor:
    """Return log p of everything possible; tokens that are never generated have −∞, as in ``decode``.

    ``known`` is a token that counts although it is never generated.
    """
    if checkpoint.config.has_decoder:
        logits = writable(logits, [id for id in checkpoint.framing.never if id != known])
    return logits.log_softmax(dim=-1)


def logits_at(
    model: Model, ids: Mapping[str, Tensor], positions: Sequence[int] | slice, *, memory: Tensor | None = None
) -> Tensor:
    """Return the logits of some positions: [batch, position, vocabulary] or [batch, 1, class].

    ``memory`` [batch, source position, model] is the output of the encoder, if already known.
    """
    source, target = ids.get("encoder"), ids.get("decoder")
    if model.config.kind == "encoder-decoder":
        hidden = model.decode(target, model.encode(source) if memory is None else memory, source)
    else:
        hidden = model.encode(source) if target is None else model.decode(target)
    return model.classify(hidden, source)[:, None] if model.config.n_classes else model.project(hidden[:, positions])
