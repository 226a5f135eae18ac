"""One sentence through one model, with everything recorded."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from transformer.errors import NotFiniteError
from transformer.files.checkpoints import Checkpoint
from transformer.models import Model
from transformer.probes import Edit
from transformer.runs.activation import Activation
from transformer.runs.decoding import decode
from transformer.runs.decoding_state import writable
from transformer.runs.decoding_strategies import Greedy, Strategy
from transformer.runs.edits import check_edits
from transformer.runs.inputs import (
    check_length,
    mark_task,
    prompt_ids,
    prompt_of,
    source_tensor,
    target_ids,
    text_read,
)
from transformer.runs.recorded import Recorded
from transformer.runs.recording_size import check_recording, is_recorded_by_layer
from transformer.runs.run import Run
from transformer.runs.traces import Trace
from transformer.text.tokens import TokenSequence


def trace(
    checkpoint: Checkpoint,
    sentence: str,
    target: str | None = None,
    *,
    edits: Iterable[Edit] = (),
    strategy: Strategy | None = None,
    source_pads: int = 0,
) -> Trace:
    """Record one forward pass over ``sentence`` and its output.

    If the model generates the output, it does so first, and the recorded pass runs over the generated text.
    Encoder-only models need no output. A pass with numbers that are not finite is recorded as well:
    ``Trace.first_not_finite`` says where they begin, and the output ends where the logits are not finite.

    Args:
        checkpoint: The model.
        sentence: What it reads.
        target: Given output (teacher forcing); ``None`` lets the model generate it.
        edits: Changes to the model in this call only, both while it generates and while it is recorded.
        strategy: How the output is generated; greedy by default.
        source_pads: Number of padding tokens added to the source, to show what the padding mask does.

    Raises:
        InputError: If the model cannot take a text.
        ValueError: If an edited location does not exist.
    """
    return trace_of(Run(checkpoint, sentence, target, edits=tuple(edits), strategy=strategy, source_pads=source_pads))


def trace_of(run: Run) -> Trace:
    """Record the pass that ``run`` describes; raises what ``trace`` raises."""
    checkpoint, edits = run.checkpoint, run.edits
    model, tokenizer, config = checkpoint.model, checkpoint.tokenizer, checkpoint.config
    check_edits(model.probes, edits)
    source = source_tensor(checkpoint, run.sentence, pads=run.source_pads) if config.has_encoder else None
    read: list[int] | None = None
    written: list[int] = []
    notes: list[str] = []
    activations: Recorded | None = None
    if config.has_decoder:
        if not run.output:
            prompt, answer, finished = prompt_of(checkpoint, run.sentence), [], True
        elif run.strategy == Greedy(1) and run.target is None and is_long(run):
            prompt = prompt_of(checkpoint, run.sentence)
            activations = _recorded(model, None, prompt, lazy=True)  # the pass that shows the next token is recorded
            best = writable(activations.next_logits(), checkpoint.framing.never).argmax()
            answer, finished = [int(best)], True
        else:
            prompt, answer, finished = _answer(run, source)
        # A caller who asks for only the next token knows that it is one.
        if not finished and run.strategy != Greedy(1):
            notes.append(f"The output did not end within {len(answer)} tokens; it was stopped there.")
        whole = prompt + answer
        read, written = (whole[:-1], whole[1:]) if answer else (whole, [])
        what = "The target" if config.has_encoder else "The sentence with its target"
        check_length(checkpoint, len(read), what)
    if pads := run.source_pads:
        one, many = "1 <pad> token was added to the source.", f"{pads} <pad> tokens were added to the source."
        notes.append(one if pads == 1 else many)
    n_read = len(read or ())
    check_recording(model, source=0 if source is None else source.shape[1], target=n_read, by_layer=not edits)
    if activations is None:
        lazy = read is not None and not edits and is_recorded_by_layer(model, n_read)
        activations = _recorded(model, source, read, edits, lazy=lazy)
    prediction: TokenSequence | None = None
    text = ""
    if config.has_decoder:
        prediction = tokenizer.sequence(written, "prediction") if written else None
        text = tokenizer.decode(answer if config.has_encoder else whole)
    elif source is not None:
        prediction, text = _encoder_answer(checkpoint, source[0].tolist(), activations)
    return Trace(
        activations=activations,
        source=None if source is None else mark_task(checkpoint, tokenizer.sequence(source[0].tolist(), "source")),
        target=None if read is None else tokenizer.sequence(read, "target"),
        prediction=prediction,
        text=text,
        forced=run.target is not None and config.has_decoder,
        notes=tuple(notes),
        run=run,
    )


def is_long(run: Run, *, writes: int = 0) -> bool:
    """Return whether a text is recorded layer by layer (``transformer.runs.lazy_pass``).

    Args:
        run: The run; a given target counts towards the length.
        writes: Number of tokens that the model generates after it.

    Raises:
        InputError: If the model cannot take the text.
    """
    checkpoint = run.checkpoint
    if checkpoint.config.kind != "decoder-only" or run.edits:
        return False
    read = prompt_of(checkpoint, run.sentence)
    given = target_ids(checkpoint, run.target, run.sentence) if run.target else []
    return is_recorded_by_layer(checkpoint.model, len(read) + len(given) + writes)


def _answer(run: Run, source: Tensor | None) -> tuple[list[int], list[int], bool]:
    """Return the decoder's first tokens, the tokens of the output, and whether the output is complete."""
    checkpoint = run.checkpoint
    if run.target is not None:
        framing = checkpoint.framing
        prompt = list(framing.given) if checkpoint.config.has_encoder else prompt_ids(checkpoint, run.sentence)
        return prompt, [*target_ids(checkpoint, run.target, run.sentence), *framing.end], True
    prompt = prompt_of(checkpoint, run.sentence)
    try:
        decoding = decode(checkpoint, run.sentence, run.strategy, edits=run.edits, read=(source, prompt))
    except NotFiniteError as error:  # the pass over the text so far shows where the numbers stop being finite
        return prompt, [*error.written, *(checkpoint.framing.end or (0,))], True
    return prompt, list(decoding.tokens.ids), decoding.finished


def _recorded(
    model: Model, source: Tensor | None, read: list[int] | None, edits: Iterable[Edit] = (), *, lazy: bool = False
) -> Recorded:
    inputs = [] if source is None else [source]
    inputs += [] if read is None else [torch.tensor([read], device=model.device)]
    return Recorded(model, inputs, edits, lazy=lazy)


def _encoder_answer(
    checkpoint: Checkpoint, source: Sequence[int], activations: Mapping[str, Activation]
) -> tuple[TokenSequence | None, str]:
    """Return the output of an encoder: tokens (or ``None``) and text.

    For a classifier this is the most likely class, for a masked-token model the most likely token at every position and
    the sentence with its blanks filled in; an encoder without a head has no output.
    """
    if checkpoint.config.encodes_sentences:
        return None, ""
    if checkpoint.config.n_classes:
        return None, checkpoint.config.class_names[int(activations["classifier.logits"].values.argmax())]
    best = activations["encoder.logits"].values.argmax(axis=-1).tolist()
    mask = checkpoint.special.mask
    filled = [new if id == mask else id for id, new in zip(source, best, strict=True)]
    return checkpoint.tokenizer.sequence(best, "prediction"), text_read(checkpoint, filled)


def add_predicted_output(run: Trace) -> Trace:
    """Return a trace of a model that does not generate text, with the output that its logits give."""
    assert run.source is not None, "such a model has an encoder"
    prediction, text = _encoder_answer(run.checkpoint, run.source.ids, run.activations)
    return replace(run, prediction=prediction, text=text)
