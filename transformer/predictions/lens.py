"""The logit lens (nostalgebraist 2020, "interpreting GPT: the logit lens"): what would the model say after layer k?

The residual stream has the same axes from the embedding to the last layer, so what the model does with the last one
can be done with every earlier one: final LayerNorm, projection to the vocabulary, softmax. The words that come out were
never trained to be read there. That an early layer "says" something else does not mean that it knows nothing yet:
later layers may read its stream in another basis (Belrose et al. 2023, "Eliciting Latent Predictions", §2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from transformer.files.checkpoints import Checkpoint
from transformer.layers.residual_stream import sublayers as sublayers_of
from transformer.predictions.answer_probabilities import divergence, entropy
from transformer.runs.traces import Trace
from transformer.text.message import Message
from transformer.variants.output_heads import FirstTokenClassifier

WHOLE = Message("whole input")


@dataclass(frozen=True)
class Lens:
    """What every step of one stack would say, at every position.

    ``steps``: the embedding, then each layer (or sub-layer); ``read``: the token read at each position. In a classifier
    the words are the classes, and the first position is the whole sentence (``of_classes``).
    ``ids``, ``probabilities`` [step, position, candidate]: the likeliest words, most probable first.
    ``followed`` [position]: id of the word that is followed; ``probability`` and ``rank`` (1 = likeliest) [step,
    position] are its. ``divergence`` [step, position]: KL(last step ‖ this step) in nats, 0 = they say the same;
    ``entropy`` [step, position] in bits. ``decided`` [position]: the first step from which on the followed word stays
    the likeliest; −1 where it is not even at the end. ``final_norm``: whether there was one to apply (pre-norm).
    ``pieces``: how each id that occurs is shown. ``transport``: what ``logit_lens`` was given.
    """

    stack: str
    steps: tuple[str, ...]
    read: tuple[str, ...]
    ids: np.ndarray
    probabilities: np.ndarray
    followed: np.ndarray
    probability: np.ndarray
    rank: np.ndarray
    divergence: np.ndarray
    entropy: np.ndarray
    decided: np.ndarray
    final_norm: bool
    of_classes: bool
    pieces: Mapping[int, str]
    transport: Tensor | None = None

    def part(self, first: int, last: int) -> Lens:
        """The positions from ``first`` to before ``last`` alone, to look at a long text piece by piece."""
        places = slice(first, last)
        whole = (self.ids, self.probabilities, self.probability, self.rank, self.divergence, self.entropy)
        names = ("ids", "probabilities", "probability", "rank", "divergence", "entropy")
        return replace(
            self,
            read=self.read[places],
            followed=self.followed[places],
            decided=self.decided[places],
            **{name: values[:, places] for name, values in zip(names, whole, strict=True)},
        )

    @property
    def words(self) -> tuple[tuple[str, ...], ...]:
        """The likeliest word of every step at every position, [step][position]."""
        return tuple(tuple(self.pieces[int(id)] for id in row) for row in self.ids[:, :, 0])

    @property
    def followed_words(self) -> tuple[str, ...]:
        """The word that is followed at each position."""
        return tuple(self.pieces[int(id)] for id in self.followed)


def logit_lens(
    trace: Trace,
    *,
    sublayers: bool = False,
    candidates: int = 5,
    follow: Sequence[int] | None = None,
    transport: Tensor | None = None,
) -> Lens:
    """p_k = softmax(W · LayerNorm_final(x_k)) for the stream x_k after every layer k, and before the first.

    ``sublayers`` adds a step after each attention. ``follow``: the id to
    follow at each position; by default the likeliest word of the last step, in a classifier the class of the sentence.
    A post-norm model has no final LayerNorm: what leaves a layer is normalised already, what leaves the embedding is
    not. A classifier's head is applied to every token alone, too; its logits for the sentence are the mean of those.

    ``transport`` [step, model, model], one matrix for every layer's step but the last: J_k x_k is read instead of x_k
    (``transformer.predictions.jacobian_lens``); the identity changes nothing.

    Raises ``ValueError`` when ``follow`` does not have one id per position, or ``transport`` not one matrix per step.
    """
    checkpoint, config = trace.checkpoint, trace.checkpoint.config
    stack = lens_stack(checkpoint)
    steps, names = _steps(trace, stack, sublayers)
    if transport is not None and (sublayers or tuple(transport.shape) != (len(names) - 1, *2 * (config.d_model,))):
        raise ValueError(
            f"transport has shape {tuple(transport.shape)}; give one matrix of {config.d_model} × {config.d_model} for "
            f"each of the {len(names) - 1} steps before the last, and no sub-layers"
        )
    read = ((WHOLE,) if config.n_classes else ()) + trace.tokens(stack).displays
    *_, last = _read_outs(trace, names[-1:])
    size = last.shape[-1]
    if follow is None:
        best = last.argmax(axis=-1)
        followed = np.full_like(best, best[0]) if config.n_classes else best
    else:
        followed = np.asarray(follow, dtype=np.int64)
        if followed.shape != (len(read),) or followed.min() < 0 or followed.max() >= size:
            raise ValueError(
                f"follow has shape {followed.shape}; give one id below {size} for each of the {len(read)} positions"
            )
    places = np.arange(len(read))
    found: dict[str, list[np.ndarray]] = {
        key: [] for key in ("ids", "probabilities", "probability", "rank", "divergence", "entropy")
    }
    for log_p in _read_outs(trace, names, transport=transport):
        ids = torch.from_numpy(log_p).topk(min(candidates, size), dim=-1).indices.numpy()
        own = log_p[places, followed]
        p = np.exp(log_p)
        found["ids"].append(ids)
        found["probabilities"].append(np.take_along_axis(p, ids, axis=-1))
        found["probability"].append(np.exp(own))
        found["rank"].append(1 + (log_p > own[:, None]).sum(axis=-1))
        found["divergence"].append(divergence(last, log_p))
        found["entropy"].append(entropy(log_p))
    arrays = {key: np.stack(values) for key, values in found.items()}
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
        transport=transport,
        **arrays,
    )


def decided_step(agrees: np.ndarray) -> np.ndarray:
    """[position]: the first step from which on ``agrees`` [step, position] stays true; −1 where it ends false."""
    from_the_end = np.logical_and.accumulate(agrees[::-1], axis=0).sum(axis=0)
    return np.where(from_the_end > 0, len(agrees) - from_the_end, -1)


def lens_stack(checkpoint: Checkpoint) -> str:
    """The stack whose stream is read out into words or classes; nothing ever reads words out of a translator's
    encoder."""
    return "decoder" if checkpoint.config.has_decoder else "encoder"


@dataclass(frozen=True)
class WordCourse:
    """How the probabilities of a few words change from step to step at one position: [word, step].

    The first word is the one that is followed, the second the runner-up: the likeliest other one at the last step. The
    rest led at some earlier step, in that order.
    """

    steps: tuple[str, ...]
    words: tuple[str, ...]
    ids: tuple[int, ...]
    probabilities: np.ndarray


def word_course(trace: Trace, lens: Lens, position: int, *, most: int = 6) -> WordCourse:
    """The followed word, the runner-up and the words that led on the way, at most ``most`` of them.

    ``lens`` says which steps and which word; it must come from the same ``trace``.
    """
    if not 0 <= position < len(lens.read):
        raise ValueError(f"position is {position}, but the lens has the positions 0 to {len(lens.read) - 1}")
    per_layer = trace.n_layers(lens.stack) + 1
    _, names = _steps(trace, lens.stack, len(lens.steps) != per_layer)
    rows = slice(position, position + 1)
    log_p = np.concatenate(list(_read_outs(trace, names, rows, lens.transport)))  # [step, word]
    followed = int(lens.followed[position])
    others = [int(id) for id in np.argsort(-log_p[-1], kind="stable")[:2] if id != followed]
    leaders = [int(id) for id in lens.ids[:, position, 0]]
    ids = tuple(dict.fromkeys([followed, *others[:1], *leaders]))[:most]
    words = tuple(shown_word(trace.checkpoint, id) for id in ids)
    return WordCourse(lens.steps, words, ids, np.exp(log_p[:, list(ids)]).T)


def streams_between(checkpoint: Checkpoint) -> tuple[str, ...]:
    """The activations that the steps of the layers read: before the first layer, and after each."""
    stack = lens_stack(checkpoint)
    layers = range(len(checkpoint.model.get_submodule(stack).layers))
    return (f"{stack}.layers.0.residual.in", *(f"{stack}.layers.{layer}.residual.out" for layer in layers))


def _steps(trace: Trace, stack: str, sublayers: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the steps are called, and the activation of the stream at each."""
    start, *after = streams_between(trace.checkpoint)
    if sublayers:
        found = sublayers_of(trace, stack)
        return (Message("embedding"), *(step.label for step in found)), (start, *(step.after for step in found))
    names = (Message("layer {layer}", layer=layer) for layer in range(len(after)))
    return (Message("embedding"), *names), (start, *after)


def _read_outs(
    trace: Trace, names: Sequence[str], rows: slice = slice(None), transport: Tensor | None = None
) -> Iterator[np.ndarray]:
    """``read_out`` of one recorded stream after the other; the last one needs no transport."""
    checkpoint = trace.checkpoint
    ids = trace.tokens(lens_stack(checkpoint)).ids
    for step, name in enumerate(names):
        # A copy, because torch takes no read-only arrays.
        stream = torch.tensor(trace.values(name), device=checkpoint.model.device)
        if transport is not None and step < len(transport):
            stream = stream @ transport[step].T.to(stream)
        yield read_out(checkpoint, stream, ids, rows).numpy(force=True)


@torch.inference_mode()
def read_out(checkpoint: Checkpoint, stream: Tensor, ids: Sequence[int], rows: slice | Sequence[int]) -> Tensor:
    """log p of every word at the positions ``rows``, [position, word] in float64, for a stream [position, model] of the
    tokens ``ids``, read as the last one is."""
    model = checkpoint.model
    norm = model.get_submodule(lens_stack(checkpoint)).final_norm
    hidden = stream[None] if norm is None else norm(stream[None])
    logits = _classes(checkpoint, hidden, ids)[rows] if model.config.n_classes else model.project(hidden[:, rows])[0]
    return torch.log_softmax(logits.double(), dim=-1)


def _classes(checkpoint: Checkpoint, hidden: Tensor, read: Sequence[int]) -> Tensor:
    """Logits [the whole sentence and then each token, class]."""
    ids = torch.tensor([read], device=hidden.device)
    model = checkpoint.model
    if isinstance(model.classifier, FirstTokenClassifier):  # it reads the first token; each of the others in its place
        alone = [model.classify(hidden[:, place:], ids[:, place:]) for place in range(hidden.shape[1])]
        return torch.cat((alone[0], *alone))
    return torch.cat((model.classify(hidden, ids), model.classifier.projection(hidden[0])))


def shown_word(checkpoint: Checkpoint, id: int) -> str:
    """How a token of the vocabulary, or a class, is shown."""
    config = checkpoint.config
    return config.class_names[id] if config.n_classes else checkpoint.tokenizer.display(id)
