"""One sentence through one model, with everything recorded."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from transformer.errors import NotFiniteError
from transformer.files.checkpoints import Checkpoint
from transformer.probes import Edit, record
from transformer.runs.decoding import decode
from transformer.runs.decoding_strategies import Greedy, Strategy
from transformer.runs.edits import check_edits
from transformer.runs.inputs import check_length, padding, prompt_ids, prompt_of, source_tensor, target_ids, task_told
from transformer.runs.recording_size import check_recording
from transformer.runs.run import Run
from transformer.runs.slim_activations import slimmed
from transformer.runs.traces import Trace
from transformer.text.message import Message
from transformer.text.tokens import TokenSequence


def trace(
    checkpoint: Checkpoint,
    sentence: str,
    target: str | None = None,
    *,
    edits: Iterable[Edit] = (),
    strategy: Strategy | None = None,
    source_pads: int = 0,
    target_pads: int = 0,
) -> Trace:
    """Record one forward pass over ``sentence`` and its answer.

    The answer is ``target`` where one is given (teacher forcing); otherwise the model writes it first, by ``strategy``
    (default greedy), and the pass that is recorded runs over what it wrote. Encoder-only models need no answer.
    ``source_pads`` and ``target_pads`` add padding, to show what the padding mask does. ``edits`` change the model
    for this call only, while it writes and while it is recorded.

    A pass whose numbers are not finite is recorded, too: ``Trace.first_not_finite`` says where they begin. The answer
    then ends where the logits are not finite.

    Raises ``InputError`` for a text that the model cannot take, ``ValueError`` for an edit of what is not there.
    """
    return trace_of(
        Run(
            checkpoint,
            sentence,
            target,
            edits=tuple(edits),
            strategy=strategy,
            source_pads=source_pads,
            target_pads=target_pads,
        )
    )


def trace_of(run: Run) -> Trace:
    """``trace`` of what a ``Run`` says. Raises what ``trace`` raises."""
    checkpoint, edits, target_pads = run.checkpoint, run.edits, run.target_pads
    model, tokenizer, config = checkpoint.model, checkpoint.tokenizer, checkpoint.config
    check_edits(model.probes, edits)
    source = source_tensor(checkpoint, run.sentence, pads=run.source_pads) if config.has_encoder else None
    read: list[int] | None = None
    written: list[int] = []
    notes: list[Message] = []
    if config.has_decoder:
        prompt, answer, finished = _answer(run, source)
        if not finished and run.strategy != Greedy(1):  # who asks for the next token alone knows that it is one
            notes.append(
                Message("The answer did not end within {count} tokens; it was stopped there.", count=len(answer))
            )
        whole, pads = prompt + answer, padding(checkpoint, target_pads)
        read, written = whole[:-1] + pads, whole[1:] + pads
        what = Message("The target") if config.has_encoder else Message("The sentence with its target")
        check_length(checkpoint, len(read), what, target_pads)
    notes += _padding_notes(run.source_pads, target_pads if config.has_decoder else 0)
    check_recording(model, source=0 if source is None else source.shape[1], target=len(read or ()))
    inputs = [] if source is None else [source]
    if read is not None:
        inputs.append(torch.tensor([read], device=model.device))
    with torch.inference_mode(), record(edits) as recording:
        logits = model(*inputs)
        activations = slimmed(model, recording)
    prediction: TokenSequence | None = None
    text = ""
    if config.has_decoder:
        prediction = tokenizer.sequence(written, "prediction")
        text = tokenizer.decode(answer if config.has_encoder else whole)
    elif source is not None:
        prediction, text = _encoder_answer(checkpoint, source, logits)
    return Trace(
        activations=activations,
        source=None if source is None else task_told(checkpoint, tokenizer.sequence(source[0].tolist(), "source")),
        target=None if read is None else tokenizer.sequence(read, "target"),
        prediction=prediction,
        text=text,
        forced=run.target is not None and config.has_decoder,
        notes=tuple(notes),
        run=run,
    )


def _answer(run: Run, source: Tensor | None) -> tuple[list[int], list[int], bool]:
    """The tokens that the decoder begins with, the tokens of the answer, and whether the answer came to its end."""
    checkpoint = run.checkpoint
    if run.target is not None:
        framing = checkpoint.framing
        prompt = list(framing.given) if checkpoint.config.has_encoder else prompt_ids(checkpoint, run.sentence)
        return prompt, [*target_ids(checkpoint, run.target, run.sentence), *framing.end], True
    prompt = prompt_of(checkpoint, run.sentence)
    try:
        decoding = decode(checkpoint, run.sentence, run.strategy, edits=run.edits, read=(source, prompt))
    except NotFiniteError as error:  # the pass over what was written shows where the numbers stop being finite
        return prompt, [*error.written, *(checkpoint.framing.end or (0,))], True
    return prompt, list(decoding.tokens.ids), decoding.finished


def _encoder_answer(checkpoint: Checkpoint, source: Tensor, logits: Tensor) -> tuple[TokenSequence | None, str]:
    """Nothing and the most probable class; nothing at all of an encoder without a head; or the most probable token at
    every position and the sentence with its blanks filled in."""
    if checkpoint.config.n_classes:
        return None, checkpoint.config.class_names[int(logits[0].argmax())]
    if checkpoint.config.encodes_sentences:
        return None, ""
    best = logits[0].argmax(dim=-1)
    mask = checkpoint.special.mask
    filled = source[0] if mask is None else torch.where(source[0] == mask, best, source[0])
    return checkpoint.tokenizer.sequence(best.tolist(), "prediction"), checkpoint.tokenizer.decode(filled.tolist())


def with_own_answer(run: Trace) -> Trace:
    """Return a run of a model that does not write with the answer that its own logits give."""
    checkpoint, source = run.checkpoint, run.source
    if source is None or checkpoint.config.has_decoder:
        raise ValueError(f"{checkpoint.name} writes its answer, so its logits over given tokens do not hold it")
    if checkpoint.config.encodes_sentences:
        return run
    logits = run.values("classifier.logits" if checkpoint.config.n_classes else "encoder.logits")
    ids = torch.tensor([source.ids])
    prediction, text = _encoder_answer(checkpoint, ids, torch.from_numpy(np.array(logits))[None])
    return replace(run, prediction=prediction, text=text)


def _padding_notes(source: int, target: int) -> list[Message]:
    """A sentence for each side that got <pad> tokens."""
    padded = [(source, Message("the source")), (target, Message("the target"))]
    return [
        Message("{count} <pad> token was added to {what}.", count=count, what=what)
        if count == 1
        else Message("{count} <pad> tokens were added to {what}.", count=count, what=what)
        for count, what in padded
        if count
    ]
