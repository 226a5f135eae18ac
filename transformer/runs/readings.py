"""A model run on many sentences, in batches of similar length: recorded tensors, attention views."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from transformer.errors import InputError
from transformer.fast.shortcut import fast_path
from transformer.files.checkpoints import Checkpoint
from transformer.probes import Recording, record
from transformer.runs.attention_view import AttentionView
from transformer.runs.batches import pad
from transformer.runs.decoding_state import greedy_batch
from transformer.runs.head_places import attention_layers
from transformer.runs.inputs import mark_task, prompt_ids, source_tensor, target_ids
from transformer.runs.not_finite import first_not_finite, not_finite_error
from transformer.runs.recorded import Recorded
from transformer.runs.recording_size import check_recording, rows_that_fit
from transformer.text.tokens import TokenSequence

BATCH_SIZE = 16
Progress = Callable[[int, int], None]
VIEWED = ("weights", "allowed", "scores")  # contents of an AttentionView
_MAX_CELLS = 200_000  # sentences × longest², which bounds the memory of a batch's attention maps


_Row = tuple[int, list[int], list[int] | None]  # index of the sentence, the tokens read, the given target


class RecordedBatch(NamedTuple):
    """One recorded pass over several sentences, padded to the same length.

    Attributes:
        indices: Indices of the sentences in their list.
        tokens: By stack, the tokens of each sentence, without padding.
        recording: Recorded tensors of the whole batch.
        logits: Logits of the whole batch.
        unread: Indices of sentences without data here, because they are empty or too long for the model.
    """

    indices: tuple[int, ...]
    tokens: Mapping[str, Sequence[TokenSequence]] = {}
    recording: Recording | None = None
    logits: Tensor | None = None
    unread: tuple[int, ...] = ()


class Reading(NamedTuple):
    """Result of a model for one sentence.

    Attributes:
        index: Index of the sentence in its list.
        views: Every attention layer in the order of ``attention_layers``; empty if the sentence is empty or too long.
        surprise: −log p of each token of the given target in nats, [token]; empty if none was given.
    """

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    views: tuple[AttentionView, ...]
    surprise: tuple[float, ...] = ()


def readings(
    checkpoint: Checkpoint,
    sentences: Sequence[str],
    *,
    answers: Sequence[str] | None = None,
    source_only: bool = False,
    batch_size: int = BATCH_SIZE,
    progress: Progress | None = None,
) -> Iterator[Reading]:
    """Yield the result for each of ``sentences``: first those that cannot be read, then by length.

    Padding changes numbers only by rounding, and every map is cut to the tokens of its sentence. A model of several
    tasks reads every sentence after ``task_before``, unless the sentence begins with a task itself; the tokens of a
    task count as special tokens, since they are the same for every sentence.

    Args:
        checkpoint: The model.
        sentences: What it reads.
        answers: Targets for an encoder-decoder (teacher forcing). By default it reads its own greedy translation.
        source_only: Let an encoder-decoder read only the beginning of a target.
        batch_size: Largest number of sentences in a batch.
        progress: Called as ``progress(done, total)`` with numbers of sentences after every batch; an exception that it
            raises ends the work.

    Raises:
        InputError: If no sentence can be read.
    """
    for batch in recorded_batches(
        checkpoint, sentences, answers=answers, source_only=source_only, batch_size=batch_size, parts=VIEWED,
        progress=progress,
    ):  # fmt: skip
        yield from (Reading(index, ()) for index in batch.unread)
        yield from _readings(checkpoint, batch, given=answers is not None)


def recorded_batches(
    checkpoint: Checkpoint,
    sentences: Sequence[str],
    *,
    answers: Sequence[str] | None = None,
    source_only: bool = False,
    batch_size: int = BATCH_SIZE,
    parts: Collection[str],
    progress: Progress | None = None,
) -> Iterator[RecordedBatch]:
    """Yield the recorded passes of ``readings``; sentences that cannot be read come first.

    Args:
        checkpoint: The model.
        sentences: What it reads.
        answers: As in ``readings``.
        source_only: As in ``readings``.
        batch_size: As in ``readings``.
        parts: Last parts of the names of the probes to keep ("weights", "hidden").
        progress: As in ``readings``.

    Raises:
        InputError: If no sentence can be read.
    """
    checkpoint = replace(checkpoint, prompt=None)  # sentences of a list are read without the prompt's frame
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; it must be at least 1")
    if checkpoint.config.has_encoder and checkpoint.special.pad is None:
        batch_size = 1  # shorter sentences of the batch could not be padded
    read: list[_Row] = []
    unread: list[int] = []
    for index, sentence in enumerate(sentences):
        try:
            answer = target_ids(checkpoint, answers[index], sentence) if answers else [] if source_only else None
            read.append((index, _ids(checkpoint, with_task(checkpoint, sentence)), answer))
        except InputError:
            unread.append(index)
    if not read:
        raise nothing_read_error(checkpoint, len(sentences))
    rows = sorted(read, key=lambda row: max(len(row[1]), len(row[2] or ())))
    names = {name for name in checkpoint.model.probes if name.rsplit(".", 1)[-1] in parts}
    passes = (_record(checkpoint, batch, names) for batch in _batches(checkpoint, rows, batch_size, names))
    done = 0
    for found in chain([RecordedBatch((), unread=tuple(unread))] if unread else (), passes):
        yield found
        done += len(found.unread) + len(found.indices)
        if progress is not None:
            progress(done, len(sentences))


def task_before(checkpoint: Checkpoint) -> str:
    """Return the task prefix for a sentence that names no task.

    For a model of several tasks (Raffel et al. 2020, §2.4) the task is translation into French, the language of the
    annotated pairs, or otherwise the model's first task. For every other model the prefix is "".
    """
    starts = checkpoint.framing.starts
    return next((start for start in starts if "to French" in start), next(iter(starts), ""))


def with_task(checkpoint: Checkpoint, sentence: str) -> str:
    """Return ``sentence`` after ``task_before``, unless it is blank or begins with a task."""
    if not sentence.strip() or sentence.startswith(tuple(checkpoint.framing.starts)):
        return sentence
    return task_before(checkpoint) + sentence


def nothing_read_error(checkpoint: Checkpoint, count: int) -> InputError:
    """Return the error for a list of ``count`` sentences none of which can be read."""
    return InputError(
        f"{checkpoint.name} cannot read any of the {count} sentences given: at least one must not be "
        f"empty and have at most {checkpoint.config.max_length} tokens, special tokens included."
    )


def _task_as_special(checkpoint: Checkpoint, tokens: TokenSequence) -> TokenSequence:
    """Return ``tokens`` with ``special`` set on those of the task that they begin with."""
    tokens = mark_task(checkpoint, tokens)
    return TokenSequence(tuple(replace(token, special=token.special or token.role == "task") for token in tokens))


def _ids(checkpoint: Checkpoint, sentence: str) -> list[int]:
    if checkpoint.config.has_encoder:
        return source_tensor(checkpoint, sentence)[0].tolist()
    ids = prompt_ids(checkpoint, sentence)
    check_recording(checkpoint.model, target=len(ids))  # a batch records every layer at once
    return ids


def _batches(
    checkpoint: Checkpoint, rows: Sequence[_Row], batch_size: int, names: Collection[str]
) -> Iterator[list[_Row]]:
    batch: list[_Row] = []
    config = checkpoint.config
    stacks = [name for name, exists in (("source", config.has_encoder), ("target", config.has_decoder)) if exists]
    for row in rows:
        longest = max(len(row[1]), len(row[2] or ()))
        fitting = rows_that_fit(checkpoint.model, batch_size, **dict.fromkeys(stacks, longest), names=names)
        if batch and (len(batch) >= fitting or (len(batch) + 1) * longest**2 > _MAX_CELLS):
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


@torch.inference_mode()
def _record(checkpoint: Checkpoint, batch: Sequence[_Row], names: Collection[str]) -> RecordedBatch:
    model, config, pad_id = checkpoint.model, checkpoint.config, checkpoint.special.pad or 0
    indices, sources, answers = (list(column) for column in zip(*batch, strict=True))
    read = {"encoder" if config.has_encoder else "decoder": sources}
    if config.has_encoder and config.has_decoder:
        start = checkpoint.framing.answer
        read["decoder"] = (
            _translations(checkpoint, sources) if answers[0] is None else [[*start, *ids] for ids in answers]
        )
    inputs = [pad(ids, pad_id).to(model.device) for ids in read.values()]
    with record(names=names) as recording:
        logits = model(*inputs)
    _check_finite(checkpoint, logits, dict(zip(read, inputs, strict=True)))
    tokens = {stack: [checkpoint.tokenizer.sequence(ids) for ids in rows] for stack, rows in read.items()}
    if checkpoint.framing.starts:
        tokens["encoder"] = [_task_as_special(checkpoint, sequence) for sequence in tokens["encoder"]]
    return RecordedBatch(tuple(indices), tokens, recording, logits)


def _check_finite(checkpoint: Checkpoint, logits: Tensor, inputs: Mapping[str, Tensor]) -> None:
    """Check the logits of a batch.

    Raises:
        NotFiniteError: If there is NaN or +∞; the message names the first such text.
    """
    model = checkpoint.model
    wrong = ~torch.isfinite(logits.flatten(start_dim=1).amax(dim=1))
    for row in wrong.nonzero().flatten().tolist():
        own = {stack: ids[row : row + 1] for stack, ids in inputs.items()}
        if (found := first_not_finite(Recorded(model, tuple(own.values())))) is not None:
            ids = own.get(found.stack)
            tokens = None if ids is None else checkpoint.tokenizer.sequence(ids[0].tolist())
            raise not_finite_error(found, tokens, edited=False)


def _readings(checkpoint: Checkpoint, batch: RecordedBatch, *, given: bool) -> tuple[Reading, ...]:
    """Return the results of a batch; ``given`` says whether the targets were given."""
    tokens, recording, logits = batch.tokens, batch.recording, batch.logits
    if recording is None or logits is None:
        return ()
    views: list[list[AttentionView]] = [[] for _ in batch.indices]
    for stack, kind, layer in attention_layers(checkpoint.config):
        name, keys = f"{stack}.layers.{layer}.{kind}_attention", tokens["encoder" if kind == "cross" else stack]
        arrays = {part: recording.tensors[f"{name}.{part}"].numpy(force=True) for part in VIEWED}
        for row, (query, key) in enumerate(zip(tokens[stack], keys, strict=True)):  # without padding
            own = {part: array[row][..., : len(query), : len(key)] for part, array in arrays.items()}
            views[row].append(
                AttentionView(name=name, stack=stack, layer=layer, kind=kind, query=query, key=key, **own)
            )
    surprise: list[tuple[float, ...]] = [() for _ in batch.indices]
    if given and len(tokens) == 2:
        start = len(checkpoint.framing.answer)
        surprise = [_surprise(logits[row], read.ids[start:], start) for row, read in enumerate(tokens["decoder"])]
    return tuple(Reading(i, tuple(seen), said) for i, seen, said in zip(batch.indices, views, surprise, strict=True))


def _surprise(logits: Tensor, answer: Sequence[int], n_before: int) -> tuple[float, ...]:
    """Return −log p in nats of each token of ``answer``, which follows ``n_before`` tokens.

    ``logits`` are [position, vocabulary].
    """
    rows = torch.log_softmax(logits[n_before - 1 : n_before - 1 + len(answer)].float(), dim=-1)
    return tuple((-rows[torch.arange(len(answer)), torch.tensor(answer)]).tolist())


def _translations(checkpoint: Checkpoint, batch: Sequence[list[int]]) -> list[list[int]]:
    """Return what the decoder reads of the model's own translations, exactly as in ``transformer.trace``."""
    model = checkpoint.model
    limits = [min(2 * len(ids) + 10, checkpoint.config.max_length - 1) for ids in batch]
    with fast_path():
        source = pad(batch, checkpoint.special.pad or 0).to(model.device)
        written = greedy_batch(model, source, max(limits), framing=checkpoint.framing)
    return [[*checkpoint.framing.answer, *ids[: limit - 1]] for ids, limit in zip(written, limits, strict=True)]
