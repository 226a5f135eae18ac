"""Whose logit is asked about, and where it was said."""

from dataclasses import dataclass

import torch

from transformer.masks import padding_mask
from transformer.models import Classifier
from transformer.predictions.lens import lens_stack
from transformer.runs.traces import Trace


@dataclass(frozen=True)
class Question:
    """Whose logit, and where. ``token``: an id of the vocabulary, or a class; ``against``: the one whose logit is taken
    away, or ``None``. ``rows``: the positions whose streams are read out: one, or all real ones in a classifier that
    takes their mean. ``position`` is ``None`` for a classifier."""

    stack: str
    position: int | None
    rows: tuple[int, ...]
    token: int
    against: int | None = None

    @property
    def logits(self) -> str:
        """The activation that holds the answer."""
        return "classifier.logits" if self.position is None else f"{self.stack}.logits"


def ask(trace: Trace, position: int | None = None, *, token: int | None = None, against: int | None = None) -> Question:
    """The question to a trace, checked. Raises what ``attribute`` raises."""
    model, stack = trace.checkpoint.model, lens_stack(trace.checkpoint)
    tokens = trace.tokens(stack)
    if trace.checkpoint.config.n_classes:
        if position is not None:
            raise ValueError(f"position is {position}, but a classifier answers for the whole sentence; leave it out")
        rows, logits = (0,), trace.values("classifier.logits")
        if isinstance(model.classifier, Classifier):
            real = padding_mask(torch.tensor(tokens.ids), trace.checkpoint.config.pad_id)
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
    return Question(stack, position, rows, token, against)
