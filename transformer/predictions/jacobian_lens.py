"""The Jacobian lens: words read from each layer's residual stream, mapped to the last layer's basis.

Gurnee et al. 2026, "Verbalizable Representations Form a Global Workspace in Language Models"
(transformer-circuits.pub/2026/workspace); their estimator is in github.com/anthropics/jacobian-lens. With h_k the
residual stream after layer k and h the input of the final norm:

    J_k = mean over sentences and positions p of  Σ_q ∂h[q] / ∂h_k[p],     p_k = softmax(W_U norm(J_k h_k)).

q runs over the positions that p can affect: p itself and, in a decoder, later ones; in an encoder all. J = I gives the
logit lens; the last layer's J is I. Nothing is trained: J is the average effect of a small change at layer k on the
output, so it leaves out what is not linear, what depends on the sentence, and the constant part of the map (the tuned
lens, Belrose et al. 2023, is trained on predictions and includes that part). One row of all J_k at once is a
vector–Jacobian product: d_model backward passes per batch.

Positions are tokens of the text. ``<s>`` and the like are left out, because they receive much attention and differ from
all other tokens (the authors leave out the first 16 positions of long texts); in a classifier, which reads them, they
count. For an encoder-decoder, which generates its own output, the residual stream is the decoder's. For a
masked-token model, one word of each sentence is masked.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from transformer.disk.tensor_files import TensorFile
from transformer.disk.whole_files import atomic_path
from transformer.errors import CheckpointError, InputError
from transformer.files.checkpoints import Checkpoint, file_of_other_weights
from transformer.files.layout import file_of_results, is_same_fingerprint
from transformer.files.snapshots import quantise
from transformer.predictions.lens import lens_stack, read_out, streams_between
from transformer.probes import record
from transformer.runs.autograd import gradients, gradients_begin_at
from transformer.runs.batches import pad
from transformer.runs.readings import nothing_read_error, recorded_batches
from transformer.text.sentence_files import sentence_digest
from transformer.text.tokens import TokenSequence

FILE = "jacobian_lens.safetensors"
HELD_OUT = 3  # every third sentence is used for measuring, not for fitting
_BATCH = 64  # sentences; a backward pass costs the same for every row of J, so batches are large
_WORD = re.compile(r"\w+(?:['’]\w+)*")
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Agreement:
    """How often each lens predicts the final word, [step], on sentences that it was not fitted on.

    ``places`` counts the positions in ``sentences``: tokens that are read, masked tokens in a masked-token model, whole
    sentences in a classifier.
    """

    sentences: int
    places: int
    logit: tuple[float, ...]
    jacobian: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class JacobianLens:
    """A fitted lens.

    Attributes:
        transport: J_k of the embedding and of every layer but the last, [step, model, model], float32, for
            ``logit_lens``.
        sentences: Number of sentences that it was averaged over.
        places: Number of positions that it was averaged over.
        digest: Hash of all sentences that were given.
    """

    transport: Tensor
    sentences: int
    places: int
    digest: str
    agreement: Agreement


def jacobian_lens(
    checkpoint: Checkpoint, sentences: Sequence[str], *, batch_size: int = _BATCH, progress: Progress | None = None
) -> JacobianLens:
    """Fit J on two thirds of ``sentences`` and measure on every third one.

    ``progress(done, total)`` counts sentences; an exception that it raises ends the computation.

    Raises:
        InputError: If the model has no output vocabulary, or no sentence of either part can be read.
    """
    stack = lens_stack(checkpoint)
    if not checkpoint.config.n_classes and not hasattr(checkpoint.model.get_submodule(stack), "vocabulary_projection"):
        raise InputError("{name} outputs vectors, so it has no words to read out.", name=checkpoint.name)
    given = sentences
    if checkpoint.config.fills_blanks:
        given = [_mask_one_word(sentence, number) for number, sentence in enumerate(sentences)]
    fitted = [sentence for number, sentence in enumerate(given) if number % HELD_OUT]

    def report(done: float) -> None:
        if progress is not None:
            progress(int(done), len(given))

    transport, read, places = _mean_jacobian(checkpoint, fitted, batch_size, report)
    found = _agreement(checkpoint, given[::HELD_OUT], transport, lambda done: report(len(fitted) + done))
    return JacobianLens(transport, read, places, sentence_digest(sentences), found)


def save_jacobian_lens(checkpoint: Checkpoint, found: JacobianLens) -> Path:
    """Write ``jacobian_lens.safetensors`` beside the weights: J − I in 8 bits, one scale per row."""
    identity = torch.eye(found.transport.shape[-1])
    changes, scales = zip(*(quantise(matrix.cpu() - identity) for matrix in found.transport), strict=True)
    about = {name: value for name, value in vars(found).items() if name not in ("transport", "agreement")}
    said = json.dumps({**about, "checkpoint": checkpoint.fingerprint, "agreement": asdict(found.agreement)})
    path = file_of_results(checkpoint.path, FILE)
    with atomic_path(path) as temporary:
        tensors = {"changes": torch.stack(changes), "scales": torch.stack(scales)}
        save_file(tensors, str(temporary), metadata={"about": said})
    return path


def load_jacobian_lens(checkpoint: Checkpoint) -> JacobianLens | None:
    """Load what ``save_jacobian_lens`` wrote for exactly this checkpoint; ``None`` if there is no file.

    Raises:
        CheckpointError: If the file is broken, belongs to other weights, or does not fit the model.
    """
    path = file_of_results(checkpoint.path, FILE)
    if not path.is_file():
        return None
    steps, width = len(streams_between(checkpoint)), checkpoint.config.d_model
    try:
        with TensorFile(path) as file:
            about = json.loads(file.metadata["about"])
            if not is_same_fingerprint(about["checkpoint"], checkpoint.fingerprint):
                raise file_of_other_weights(checkpoint, FILE, str(about["checkpoint"]))
            shapes = tuple(file.tensors[name].shape for name in ("changes", "scales"))
            if shapes != ((steps - 1, width, width), (steps - 1, width)):
                raise ValueError(f"it has shapes {shapes[0]} and {shapes[1]} for {steps} steps of {width} numbers")
            changes, scales = file.read("changes"), file.read("scales")
        found = about["agreement"]
        said = Agreement(found["sentences"], found["places"], tuple(found["logit"]), tuple(found["jacobian"]))
        if not len(said.logit) == len(said.jacobian) == steps:
            raise ValueError(f"it measures {len(said.logit)} and {len(said.jacobian)} steps of {steps}")
        transport = changes.float() * scales.float()[..., None] + torch.eye(width)
        return JacobianLens(transport, about["sentences"], about["places"], about["digest"], said)
    except CheckpointError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OSError) as error:
        raise CheckpointError(
            "{path} of {name} is not a Jacobian lens of this model ({what}), so it is not used.",
            path=FILE,
            name=checkpoint.name,
            what=error,
        ) from error


def _mask_one_word(sentence: str, number: int) -> str:
    """Mask one word of ``sentence``; ``number`` varies which word it is from sentence to sentence."""
    words = list(_WORD.finditer(sentence))
    if not words or "___" in sentence:
        return sentence
    start, end = words[number % len(words)].span()
    return f"{sentence[:start]}___{sentence[end:]}"


def _mean_jacobian(
    checkpoint: Checkpoint, sentences: Sequence[str], batch_size: int, report: Callable[[float], None]
) -> tuple[Tensor, int, int]:
    """Return J, [step, model, model], of all steps but the last, and how many sentences and positions."""
    model, stack, names = checkpoint.model, lens_stack(checkpoint), streams_between(checkpoint)
    width = checkpoint.config.d_model
    sums = torch.zeros(len(names) - 1, width, width, dtype=torch.float64, device=model.device)
    leaves = [gradients_begin_at(names[0])]
    done, read, places = 0, 0, 0
    for batch in recorded_batches(checkpoint, sentences, batch_size=batch_size):
        if batch.tokens:
            shape = [[token.id for token in row] for row in batch.tokens[stack]]
            counted = pad([_position_flags(checkpoint, row) for row in batch.tokens[stack]], 0).to(model.device)
            inputs = [
                pad([[token.id for token in row] for row in rows], checkpoint.special.pad or 0).to(model.device)
                for rows in batch.tokens.values()
            ]
            with gradients(), record(leaves, names) as recording:
                model(*inputs)
                *streams, last = (recording.tensors[name] for name in names)
                weights = counted.to(last)
                for row in range(width):
                    slopes = torch.autograd.grad(last[..., row], streams, weights, retain_graph=row + 1 < width)
                    for step, slope in enumerate(slopes):
                        sums[step, row] += (slope * weights[..., None]).sum(dim=(0, 1))
                    report(done + len(shape) * row / width)
            read, places = read + len(shape), places + int(counted.sum())
        done += len(batch.indices) + len(batch.unread)
    if not places:
        raise nothing_read_error(checkpoint, len(sentences))
    return (sums / places).float(), read, places


def _position_flags(checkpoint: Checkpoint, tokens: TokenSequence) -> list[int]:
    """Return 1 for each token that counts as a position, else 0: [position]."""
    whole = bool(checkpoint.config.n_classes)
    return [int(whole or not token.special or token.role == "mask") for token in tokens]


def _agreement(
    checkpoint: Checkpoint, sentences: Sequence[str], transport: Tensor, report: Callable[[float], None]
) -> Agreement:
    stack, names = lens_stack(checkpoint), streams_between(checkpoint)
    hits = np.zeros((2, len(names)), dtype=np.int64)
    done, read, places = 0, 0, 0
    for batch in recorded_batches(checkpoint, sentences, parts=set(names)):
        for row, tokens in enumerate(batch.tokens.get(stack, ())):
            asked = _compared_rows(checkpoint, tokens)
            streams = [batch.recording.tensors[name][row, : len(tokens)] for name in names]
            said = np.stack([_top_words(checkpoint, stream, tokens, asked) for stream in streams])
            moved = [stream @ matrix.T for stream, matrix in zip(streams, transport, strict=False)]
            carried = np.stack([*(_top_words(checkpoint, stream, tokens, asked) for stream in moved), said[-1]])
            hits += (np.stack((said, carried)) == said[-1]).sum(axis=-1)
            read, places = read + 1, places + len(asked)
            report(done + row)
        done += len(batch.indices) + len(batch.unread)
    if not places:
        raise nothing_read_error(checkpoint, len(sentences))
    return Agreement(read, places, *(tuple((row / places).tolist()) for row in hits))


def _compared_rows(checkpoint: Checkpoint, tokens: TokenSequence) -> list[int]:
    """Return the rows of ``read_out`` whose words are compared."""
    if checkpoint.config.n_classes:
        return [0]  # the whole sentence
    return [token.index for token in tokens if token.role == "mask" or not checkpoint.config.fills_blanks]


def _top_words(checkpoint: Checkpoint, stream: Tensor, tokens: TokenSequence, asked: list[int]) -> np.ndarray:
    """Return the most likely word in each of the rows ``asked``: [row]."""
    return read_out(checkpoint, stream, tokens.ids, asked).argmax(dim=-1).numpy(force=True)
