"""The logit lens (nostalgebraist 2020): what would the model predict after layer k?

The residual stream has the same axes from the embedding to the last layer, so the final steps of the model can be
applied to every layer: final LayerNorm, projection to the vocabulary, softmax. Earlier layers were never trained for
this. If an early layer reads out as another word, it may still hold the information: later layers may read its stream
in another basis (Belrose et al. 2023, "Eliciting Latent Predictions", §2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from transformer.files.checkpoints import Checkpoint
from transformer.guests.read_out import read_out_of
from transformer.layers.residual_stream import sublayers as sublayers_of
from transformer.predictions.answer_probabilities import divergence, entropy
from transformer.predictions.target import lens_stack, shown_word
from transformer.runs.traces import Trace

WHOLE = "whole input"
_CANDIDATES = 100  # words that are offered at a position
_COMPETING = 6  # words whose probabilities are followed through the steps


class Column(NamedTuple):
    """The followed word at one position, and how it came to lead.

    Attributes:
        read: The token that is read there.
        word: The followed word.
        probability: Its probability at the last step.
        runner_up: The most likely other word at the last step, "" if there is none.
        top_from: The step from which the word stays the most likely; −1 if it does not lead at the end.
        earlier: The words that led at earlier steps, each once, from the first step on.
    """

    read: str
    word: str
    probability: float
    runner_up: str
    top_from: int
    earlier: tuple[str, ...]


@dataclass(frozen=True)
class Lens:
    """Prediction read out at every step of one stack, at every position.

    In a classifier the words are the classes, and the first position is the whole sentence (``of_classes``).

    Attributes:
        steps: Names of the steps: the embedding, then each layer (or sub-layer).
        read: Token read at each position.
        ids: Most likely words, best first, [step, position, candidate].
        probabilities: Their probabilities, [step, position, candidate].
        followed: Id of the word that is followed, [position].
        probability: Its probability, [step, position].
        rank: Its rank, 1 = most likely, [step, position].
        divergence: KL(last step ‖ this step) in nats, [step, position]; 0 if they predict the same.
        entropy: Entropy in bits, [step, position].
        decided: Step since which the followed word has been the most likely, [position]; −1 if it is not the most
            likely at the end.
        final_norm: Whether there is a final norm to apply (pre-norm).
        pieces: Text of each id that occurs.
    """

    stack: str
    steps: tuple[str, ...]
    read: tuple[str, ...]
    ids: np.ndarray
    probabilities: np.ndarray
    followed: np.ndarray
    probability: np.ndarray
    rank: np.ndarray
    divergence: np.ndarray | None
    entropy: np.ndarray | None
    decided: np.ndarray
    final_norm: bool
    of_classes: bool
    pieces: Mapping[int, str]
    first: int = 0

    def part(self, first: int, last: int) -> Lens:
        """Return the positions from ``first`` up to but not including ``last``, to show part of a long text."""
        places = slice(first, last)
        changed = {name: getattr(self, name)[places] for name in ("read", "followed", "decided")}
        for name in ("ids", "probabilities", "probability", "rank", "divergence", "entropy"):
            if (values := getattr(self, name)) is not None:
                changed[name] = values[:, places]  # [step, position …]
        return replace(self, first=self.first + first, **changed)

    def place_of(self, position: int) -> int:
        """Return which column shows a position of the text.

        Raises:
            ValueError: If none does.
        """
        place, last = position - self.first, self.first + len(self.read) - 1
        if not 0 <= place < len(self.read):
            raise ValueError(f"position is {position}, but the lens has the positions {self.first} to {last}")
        return place

    def column(self, position: int) -> Column:
        """Return the followed word of one position; ``position`` is counted from the first one of the text.

        In a classifier, the column of a single token has the class that is predicted from that token alone.
        """
        place = self.place_of(position)
        alone = self.of_classes and position > 0
        top, ids = int(self.decided[place]), self.ids[-1, place]
        others = [int(id) for id in ids if id != self.followed[place]]
        return Column(
            read=self.read[place],
            word=self.words[-1][place] if alone else self.followed_words[place],
            probability=float(self.probabilities[-1, place, 0] if alone else self.probability[-1, place]),
            runner_up=self.pieces[others[0]] if others else "",
            top_from=top,
            earlier=tuple(dict.fromkeys(row[place] for row in self.words[: max(0, top)])),
        )

    @property
    def words(self) -> tuple[tuple[str, ...], ...]:
        """Most likely word of every step at every position, [step][position]."""
        return tuple(tuple(self.pieces[int(id)] for id in row) for row in self.ids[:, :, 0])

    @property
    def followed_words(self) -> tuple[str, ...]:
        """The followed word at each position."""
        return tuple(self.pieces[int(id)] for id in self.followed)


def logit_lens(
    trace: Trace,
    *,
    sublayers: bool = False,
    candidates: int = 5,
    follow: Sequence[int] | None = None,
    columns: tuple[int, int] | None = None,
    spread: bool = True,
) -> Lens:
    """Read p_k = softmax(W · LayerNorm_final(x_k)) from the residual stream around every layer.

    A post-norm model has no final LayerNorm: the output of a layer is already normalised, that of the embedding is not.
    A classifier's head is also applied to each token alone; the logits of the sentence are the mean of these.

    Args:
        trace: The run.
        sublayers: Whether there is also a step after each attention.
        candidates: How many of the most likely words of each cell are kept.
        follow: The id to follow at each of the ``columns``; by default the most likely word of the last step, in a
            classifier the class of the sentence.
        columns: The first position to read and the one after the last, by default all; in a classifier, position 0 is
            the whole sentence.
        spread: Whether ``divergence`` and ``entropy`` are computed, each of which takes a pass over the vocabulary.

    Raises:
        ValueError: If ``follow`` does not have one id per position.
    """
    checkpoint, config = trace.checkpoint, trace.checkpoint.config
    stack = lens_stack(checkpoint)
    steps, names = _steps(trace, stack, sublayers)
    places = slice(*columns or (None,))
    read = (((WHOLE,) if config.n_classes else ()) + trace.tokens(stack).displays)[places]
    (last,) = _logits(trace, names[-1:], places)
    size = last.shape[-1]
    if follow is None:
        best = last.argmax(dim=-1).numpy(force=True)
        followed = np.full_like(best, trace.values("classifier.logits").argmax()) if config.n_classes else best
    else:
        followed = np.asarray(follow, dtype=np.int64)
        if followed.shape != (len(read),) or followed.min() < 0 or followed.max() >= size:
            raise ValueError(
                f"follow has shape {followed.shape}; give one id below {size} for each of the {len(read)} positions"
            )
    final = torch.log_softmax(last.double(), dim=-1).numpy(force=True) if spread else None
    rows = [
        _read_cells(logits, torch.from_numpy(followed).to(logits.device), min(candidates, size), final)
        for logits in (*_logits(trace, names[:-1], places), last)
    ]
    arrays = {key: None if rows[0][key] is None else np.stack([row[key] for row in rows]) for key in rows[0]}
    used = {*arrays["ids"].ravel().tolist(), *followed.tolist()}
    return Lens(
        stack=stack,
        steps=steps,
        read=read,
        followed=followed,
        decided=decided_step(arrays["ids"][:, :, 0] == followed),
        final_norm=getattr(checkpoint.model, stack).final_norm is not None,
        of_classes=bool(config.n_classes),
        pieces={id: shown_word(checkpoint, id) for id in sorted(used)},
        first=columns[0] if columns else 0,
        **arrays,
    )


def n_columns(trace: Trace) -> int:
    """Return how many positions ``logit_lens`` reads; in a classifier one more than there are tokens."""
    return len(trace.tokens(lens_stack(trace.checkpoint))) + bool(trace.checkpoint.config.n_classes)


def next_in_text(trace: Trace) -> tuple[int, ...]:
    """Return the next tokens of the text where they differ from the predictions; else nothing."""
    if not trace.checkpoint.config.has_decoder or any(token.role == "pad" for token in trace.prediction):
        return ()
    own = tuple(trace.values("decoder.logits").argmax(axis=-1).tolist())
    return trace.prediction.ids if trace.prediction.ids != own else ()


def candidate_words(trace: Trace, position: int | None, first: int | None = None) -> dict[str, int]:
    """Return the ids of the most likely words at a position, by their display.

    Args:
        trace: The run.
        position: Where the words are predicted; ``None`` for the classes of a whole input.
        first: The id that precedes all others, if any.
    """
    stack = lens_stack(trace.checkpoint)
    logits = trace.values("classifier.logits") if position is None else trace.values(f"{stack}.logits")[position]
    known: dict[str, int] = {}
    ids = [] if first is None else [first]
    for id in dict.fromkeys((*ids, *np.argsort(-logits, kind="stable")[:_CANDIDATES].tolist())):
        label = shown_word(trace.checkpoint, id)
        known[f"{label} ({id})" if label in known else label] = id
    return known


def _read_cells(logits: Tensor, followed: Tensor, count: int, final: np.ndarray | None) -> dict[str, np.ndarray | None]:
    """Return the cells of one step, given its logits [position, word] and log p of the last step."""
    own = logits.gather(-1, followed[:, None])
    best, ids = logits.topk(count, dim=-1)
    top = best[:, :1]
    whole = top.double() + torch.exp(logits - top).sum(dim=-1, keepdim=True, dtype=torch.float64).log()
    found = {
        "ids": ids,
        "probabilities": torch.exp(best.double() - whole),
        "probability": torch.exp(own.double() - whole)[:, 0],
        "rank": 1 + torch.count_nonzero(logits > own, dim=-1),
    }
    arrays: dict[str, np.ndarray | None] = {name: values.numpy(force=True) for name, values in found.items()}
    if final is None:
        return arrays | {"divergence": None, "entropy": None}
    log_p = torch.log_softmax(logits.double(), dim=-1).numpy(force=True)
    return arrays | {"divergence": divergence(final, log_p), "entropy": entropy(log_p)}


def decided_step(agrees: np.ndarray) -> np.ndarray:
    """Return the step from which ``agrees`` stays true, [position]; −1 if it ends false."""
    from_the_end = np.logical_and.accumulate(agrees[::-1], axis=0).sum(axis=0)
    return np.where(from_the_end > 0, len(agrees) - from_the_end, -1)


class WordProbabilities(NamedTuple):
    """Probabilities of a few words at one position, step by step: [word, step].

    The first word is the followed one, the second the most likely other one at the last step. The others led at an
    earlier step, in that order.
    """

    words: tuple[str, ...]
    probabilities: np.ndarray


def word_probabilities(trace: Trace, lens: Lens, position: int) -> WordProbabilities:
    """Return probabilities of the followed word, the most likely other one, and words that led earlier.

    ``lens`` gives the steps and the word; it must come from the same ``trace``.
    """
    column = lens.place_of(position)
    _, names = _steps(trace, lens.stack, sublayers=len(lens.steps) > trace.n_layers(lens.stack) + 1)
    logits = torch.cat(list(_logits(trace, names, slice(position, position + 1))))
    log_p = torch.log_softmax(logits.double(), dim=-1).numpy(force=True)  # [step, word]
    followed = int(lens.followed[column])
    others = [int(id) for id in np.argsort(-log_p[-1], kind="stable")[:2] if id != followed]
    leaders = [int(id) for id in lens.ids[:, column, 0]]
    ids = tuple(dict.fromkeys([followed, *others[:1], *leaders]))[:_COMPETING]
    words = tuple(shown_word(trace.checkpoint, id) for id in ids)
    return WordProbabilities(words, np.exp(log_p[:, list(ids)]).T)


def _steps(trace: Trace, stack: str, sublayers: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the steps, and the activation of the residual stream at each."""
    found = {"embedding": f"{stack}.layers.0.residual.in"}
    if sublayers:
        found |= {step.label: step.after for step in sublayers_of(trace, stack)}
    else:
        found |= {f"layer {layer}": f"{stack}.layers.{layer}.residual.out" for layer in range(trace.n_layers(stack))}
    return tuple(found), tuple(found.values())


@torch.inference_mode()
def _logits(trace: Trace, names: Sequence[str], rows: slice = slice(None)) -> Iterator[Tensor]:
    """Yield the logits [position, word] of each recorded residual stream."""
    checkpoint = trace.checkpoint
    ids = trace.tokens(lens_stack(checkpoint)).ids
    for name in names:
        # A copy, because torch takes no read-only arrays.
        stream = torch.tensor(trace.values(name), device=checkpoint.model.device)
        yield _logits_of(checkpoint, stream, ids, rows)


def _logits_of(checkpoint: Checkpoint, stream: Tensor, ids: Sequence[int], rows: slice | Sequence[int]) -> Tensor:
    model = checkpoint.model
    norm = model.get_submodule(lens_stack(checkpoint)).final_norm
    hidden = stream[None] if norm is None else norm(stream[None])
    return _classes(checkpoint, hidden, ids)[rows] if model.config.n_classes else model.project(hidden[:, rows])[0]


def _classes(checkpoint: Checkpoint, hidden: Tensor, read: Sequence[int]) -> Tensor:
    """Return logits for the whole sentence and then each token, [1 + token, class]."""
    ids = torch.tensor([read], device=hidden.device)
    model = checkpoint.model
    # This classifier reads the first token only, so move each token to the first position in turn.
    if (found := read_out_of(model, "encoder")) is not None and found.kind == "first":
        alone = [model.classify(hidden[:, place:], ids[:, place:]) for place in range(hidden.shape[1])]
        return torch.cat((alone[0], *alone))
    return torch.cat((model.classify(hidden, ids), model.classifier.projection(hidden[0])))
