"""The logit lens (nostalgebraist 2020): what would the model predict after layer k?

The residual stream has the same axes from the embedding to the last layer, so the final steps of the model can be
applied to every layer: final LayerNorm, projection to the vocabulary, softmax. Earlier layers were never trained for
this. If an early layer reads out as another word, it may still hold the information: later layers may read its stream
in another basis (Belrose et al. 2023, "Eliciting Latent Predictions", §2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from transformer.files.checkpoints import Checkpoint
from transformer.layers.residual_stream import sublayers as sublayers_of
from transformer.models import FirstTokenClassifier
from transformer.predictions.answer_probabilities import divergence, entropy
from transformer.runs.traces import Trace

WHOLE = "whole input"


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
        whole = (self.ids, self.probabilities, self.probability, self.rank, self.divergence, self.entropy)
        names = ("ids", "probabilities", "probability", "rank", "divergence", "entropy")
        return replace(
            self,
            first=self.first + places.start,
            read=self.read[places],
            followed=self.followed[places],
            decided=self.decided[places],
            **{name: None if values is None else values[:, places] for name, values in zip(names, whole, strict=True)},
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
    columns: slice = slice(None),
    spread: bool = True,
) -> Lens:
    """Read p_k = softmax(W · LayerNorm_final(x_k)) from the residual stream around every layer.

    A post-norm model has no final LayerNorm: the output of a layer is already normalised, that of the embedding is
    not. A classifier's head is applied to each token alone as well; its logits for the sentence are their mean.

    Args:
        trace: The run.
        sublayers: Whether there is also a step after each attention.
        candidates: How many of the most likely words of each cell are kept.
        follow: The id to follow at each of the ``columns``; by default the most likely word of the last step, in a
            classifier the class of the sentence.
        columns: The positions that are read; in a classifier the first one is the whole sentence.
        spread: Whether ``divergence`` and ``entropy`` are computed, each of which takes a pass over the vocabulary.

    Raises:
        ValueError: When ``follow`` does not have one id per position.
    """
    checkpoint, config = trace.checkpoint, trace.checkpoint.config
    stack = lens_stack(checkpoint)
    steps, names = _steps(trace, stack, sublayers)
    read = (((WHOLE,) if config.n_classes else ()) + trace.tokens(stack).displays)[columns]
    (last,) = _logits(trace, names[-1:], columns)
    size = last.shape[-1]
    if follow is None:
        best = last.argmax(dim=-1).numpy(force=True)
        followed = np.full_like(best, _class_of(trace)) if config.n_classes else best
    else:
        followed = np.asarray(follow, dtype=np.int64)
        if followed.shape != (len(read),) or followed.min() < 0 or followed.max() >= size:
            raise ValueError(
                f"follow has shape {followed.shape}; give one id below {size} for each of the {len(read)} positions"
            )
    final = torch.log_softmax(last.double(), dim=-1).numpy(force=True) if spread else None
    rows = [
        _read_cells(logits, torch.from_numpy(followed).to(logits.device), min(candidates, size), final)
        for logits in (*_logits(trace, names[:-1], columns), last)
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
        first=columns.start or 0,
        **arrays,
    )


def _class_of(trace: Trace) -> int:
    """Return the class of the whole sentence."""
    return int(trace.values("classifier.logits").argmax())


def _read_cells(logits: Tensor, followed: Tensor, count: int, final: np.ndarray | None) -> dict[str, np.ndarray | None]:
    """Return what is kept of one step, given its logits [position, word] and log p of the last step."""
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


def lens_stack(checkpoint: Checkpoint) -> str:
    """Return the stack whose residual stream is read out as words or classes, never a translation encoder."""
    return "decoder" if checkpoint.config.has_decoder else "encoder"


@dataclass(frozen=True)
class WordProbabilities:
    """Probabilities of a few words at one position, step by step: [word, step].

    The first word is the followed one, the second the most likely other one at the last step. The others led at an
    earlier step, in that order.
    """

    steps: tuple[str, ...]
    words: tuple[str, ...]
    ids: tuple[int, ...]
    probabilities: np.ndarray


def word_probabilities(trace: Trace, lens: Lens, position: int, *, most: int = 6) -> WordProbabilities:
    """Return the followed word, the most likely other word and words that led earlier, at most ``most``.

    ``lens`` gives the steps and the word; it must come from the same ``trace``.
    """
    column = position - lens.first
    if not 0 <= column < len(lens.read):
        last = lens.first + len(lens.read) - 1
        raise ValueError(f"position is {position}, but the lens has the positions {lens.first} to {last}")
    per_layer = trace.n_layers(lens.stack) + 1
    _, names = _steps(trace, lens.stack, len(lens.steps) != per_layer)
    rows = slice(position, position + 1)
    logits = torch.cat(list(_logits(trace, names, rows)))
    log_p = torch.log_softmax(logits.double(), dim=-1).numpy(force=True)  # [step, word]
    followed = int(lens.followed[column])
    others = [int(id) for id in np.argsort(-log_p[-1], kind="stable")[:2] if id != followed]
    leaders = [int(id) for id in lens.ids[:, column, 0]]
    ids = tuple(dict.fromkeys([followed, *others[:1], *leaders]))[:most]
    words = tuple(shown_word(trace.checkpoint, id) for id in ids)
    return WordProbabilities(lens.steps, words, ids, np.exp(log_p[:, list(ids)]).T)


def _streams_between(checkpoint: Checkpoint) -> tuple[str, ...]:
    """Return the names of the activations that the layers' steps read: before the first and after each."""
    stack = lens_stack(checkpoint)
    layers = range(len(checkpoint.model.get_submodule(stack).layers))
    return (f"{stack}.layers.0.residual.in", *(f"{stack}.layers.{layer}.residual.out" for layer in layers))


def _steps(trace: Trace, stack: str, sublayers: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the steps, and the activation of the residual stream at each."""
    start, *after = _streams_between(trace.checkpoint)
    if sublayers:
        found = sublayers_of(trace, stack)
        return ("embedding", *(step.label for step in found)), (start, *(step.after for step in found))
    names = (f"layer {layer}" for layer in range(len(after)))
    return ("embedding", *names), (start, *after)


@torch.inference_mode()
def _logits(trace: Trace, names: Sequence[str], rows: slice = slice(None)) -> Iterator[Tensor]:
    """Yield the logits [position, word] of each recorded residual stream."""
    checkpoint = trace.checkpoint
    ids = trace.tokens(lens_stack(checkpoint)).ids
    for name in names:
        # A copy, because torch takes no read-only arrays.
        stream = torch.tensor(trace.values(name), device=checkpoint.model.device)
        yield _logits_of(checkpoint, stream, ids, rows)


@torch.inference_mode()
def read_out(checkpoint: Checkpoint, stream: Tensor, ids: Sequence[int], rows: slice | Sequence[int]) -> Tensor:
    """Return log p of every word at the positions ``rows``, [position, word], in float64.

    ``stream`` [position, model], of the tokens ``ids``, is read out like that of the last layer.
    """
    return torch.log_softmax(_logits_of(checkpoint, stream, ids, rows).double(), dim=-1)


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
    if isinstance(model.classifier, FirstTokenClassifier):
        alone = [model.classify(hidden[:, place:], ids[:, place:]) for place in range(hidden.shape[1])]
        return torch.cat((alone[0], *alone))
    return torch.cat((model.classify(hidden, ids), model.classifier.projection(hidden[0])))


def shown_word(checkpoint: Checkpoint, id: int) -> str:
    """Return the text of a token of the vocabulary, or of a class."""
    config = checkpoint.config
    return config.class_names[id] if config.n_classes else checkpoint.tokenizer.display(id)
