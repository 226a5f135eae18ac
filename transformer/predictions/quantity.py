"""One number of the output: its token (or class), its position, and the tokens it is a function of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from transformer.files.checkpoints import Checkpoint
from transformer.models import Model
from transformer.runs.decoding_state import writable
from transformer.runs.traces import Trace
from transformer.text.tokens import TokenSequence

QUANTITIES = ("log_probability", "probability", "logit")


@dataclass(frozen=True)
class Quantity:
    """The number F and its arguments.

    Attributes:
        of: One of ``QUANTITIES``.
        id: The token (or class) that it belongs to.
        display: Text of the token.
        row: Row of the logits (0 for a classifier).
        source: Tokens that the encoder reads.
        target: Tokens that the decoder reads up to ``row``; the rest is hidden from it.
    """

    of: str
    row: int
    id: int
    display: str
    source: TokenSequence | None
    target: TokenSequence | None
    of_class: bool = False

    @property
    def read(self) -> dict[str, TokenSequence]:
        """Tokens by the stack that reads them, the encoder first."""
        both = {"encoder": self.source, "decoder": self.target}
        return {stack: tokens for stack, tokens in both.items() if tokens is not None}

    @property
    def place(self) -> tuple[str, int] | None:
        """(stack, position) that the prediction is read from; ``None`` for a class, read from all positions."""
        return None if self.of_class else ("decoder" if self.target is not None else "encoder", self.row)


def quantity_of(trace: Trace, *, row: int = 0, id: int | None = None, of: str = "log_probability") -> Quantity:
    """Return the number behind one prediction in ``trace``.

    Args:
        trace: The run.
        row: For a decoder the index of the token whose next token is predicted, for a masked-token model the position;
            0 for a classifier.
        id: Another token (class) than the one in the trace.
        of: One of ``QUANTITIES``.

    Raises:
        ValueError: If the row does not exist.
    """
    checkpoint, config = trace.checkpoint, trace.checkpoint.config
    if of not in QUANTITIES:
        raise ValueError(f"of is {of!r}; choose one of {', '.join(QUANTITIES)}")
    n_rows = 1 if config.n_classes else len(trace.prediction)
    if not 0 <= row < n_rows:
        raise ValueError(f"there is no row {row}; the answer is read from rows 0 to {n_rows - 1}")
    if id is None:
        id = int(trace.values("classifier.logits").argmax()) if config.n_classes else trace.prediction[row].id
    size = config.n_classes or config.vocabulary_size
    if not 0 <= id < size:
        raise ValueError(f"there is no {'class' if config.n_classes else 'token'} {id}; there are 0 to {size - 1}")
    display = config.class_names[id] if config.n_classes else checkpoint.tokenizer.display(id)
    target = None if trace.target is None else TokenSequence(trace.target.tokens[: row + 1], trace.target.name)
    return Quantity(of, row, id, display, trace.source, target, of_class=bool(config.n_classes))


def numbers(checkpoint: Checkpoint, quantity: Quantity, ids: Mapping[str, Tensor], *, row: int) -> Tensor:
    """Compute F for a batch of texts: [batch].

    Only the required row is projected to the vocabulary. Tokens that are never generated are excluded from a
    probability, as in ``decode``, unless one of them is what F is about. The current recording and gradient mode apply.

    Args:
        checkpoint: The model.
        quantity: The number.
        ids: Token ids by stack, [batch, position].
        row: Row of the prediction in these texts.
    """
    logits = logits_at(checkpoint.model, ids, [row])[:, 0]  # [batch, class] or [batch, vocabulary]
    if checkpoint.config.has_decoder and quantity.of != "logit":
        logits = writable(logits, [id for id in checkpoint.framing.never if id != quantity.id])
    if quantity.of == "log_probability":
        logits = logits.log_softmax(dim=-1)
    elif quantity.of == "probability":
        logits = logits.softmax(dim=-1)
    return logits[:, quantity.id]


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
