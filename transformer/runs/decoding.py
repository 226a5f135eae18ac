"""Decoding, one token at a time, with the alternatives at every step."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from transformer.errors import InputError, NotFiniteError
from transformer.fast.shortcut import fast_path
from transformer.files.checkpoints import Checkpoint
from transformer.models import log_probabilities
from transformer.probes import Edit, has_forward_hooks, record
from transformer.runs.activation import Activation
from transformer.runs.beam_search import Hypothesis, SearchRecorder, beam_search, check_logits
from transformer.runs.decoding_state import DecodingState, writable
from transformer.runs.decoding_strategies import Beam, Greedy, Sample, Strategy, reshape_logits
from transformer.runs.edits import check_edits
from transformer.runs.inputs import prompt_of, source_tensor, target_ids
from transformer.runs.not_finite import first_not_finite, not_finite_error
from transformer.runs.recorded import Recorded
from transformer.runs.recording_size import check_recording
from transformer.text.tokens import TokenSequence

N_CANDIDATES = 20
CONTINUATION = 40  # tokens that a decoder-only model generates by default


@dataclass(frozen=True)
class Candidate:
    """One token that could have been chosen at a step.

    Attributes:
        probability: The model's probability among all tokens that may be generated (not ``<pad>`` or ``<s>``).
        chance: The probability that the strategy drew from (after temperature, top-k, top-p); 0 for an excluded token.
    """

    id: int
    display: str
    logit: float
    probability: float
    chance: float


@dataclass(frozen=True)
class Step:
    """One decoding step.

    Attributes:
        candidates: Most likely tokens, best first.
        chosen: The candidate that was chosen.
        logits: All logits, [vocabulary].
        activations: Activations of the step, if requested; query axes have length 1 after the first step.
    """

    index: int
    candidates: tuple[Candidate, ...]
    chosen: Candidate
    logits: np.ndarray
    activations: Mapping[str, Activation] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Decoding:
    """A generated text.

    Attributes:
        tokens: Generated tokens, including ``</s>`` if it was reached (``finished``).
        log_probability: Σ log p(token) in nats, before temperature, top-k and top-p, among the tokens that may be
            generated: as in ``Candidate.probability``, the softmax leaves out those that never are (``Framing.never``;
            ``<pad>`` and ``<s>`` in our models). Including them would lower it slightly, by at most 0.0055 nats in the
            texts measured.
        hypotheses: Texts of a beam, best first.
    """

    text: str
    source: TokenSequence | None
    tokens: TokenSequence
    steps: tuple[Step, ...]
    log_probability: float
    finished: bool
    hypotheses: tuple[Hypothesis, ...] = ()


def decode(
    checkpoint: Checkpoint,
    sentence: str,
    strategy: Strategy | None = None,
    *,
    forced: str | Sequence[int] = "",
    edits: Iterable[Edit] = (),
    source_pads: int = 0,
    record_steps: bool = False,
    cached: bool = True,
    recorder: SearchRecorder | None = None,
    read: tuple[Tensor | None, list[int]] | None = None,
) -> Decoding:
    """Translate ``sentence`` (encoder-decoder) or continue it (decoder-only).

    Args:
        checkpoint: The model.
        sentence: Source sentence or prompt.
        strategy: How each token is chosen; ``Greedy()`` by default.
        forced: Text or token ids that the output must begin with.
        edits: Changes to the model during this call.
        source_pads: Number of padding tokens to add to the source.
        record_steps: Keep every activation of every step.
        cached: Reuse keys and values of earlier positions. With edits of the decoder, everything is recomputed at each
            step in any case, because an edit may change positions that a cache would not compute again.
        recorder: Observes a beam search (``transformer.predictions.hypothesis_tree``).
        read: Result of ``source_tensor`` and ``prompt_of`` for this sentence, if the caller has it already.

    Raises:
        InputError: If the model cannot take the text.
        NotFiniteError: If logits are NaN or infinite.
        ValueError: If the model does not generate text.
    """
    model, device = checkpoint.model, checkpoint.model.device
    if not model.config.has_decoder:
        raise ValueError(f"{checkpoint.name} is an {model.config.kind} model: it does not write text; use trace()")
    strategy, edits = strategy or Greedy(), tuple(edits)
    check_edits(model.probes, edits)
    framing = checkpoint.framing
    if read is None:
        source = source_tensor(checkpoint, sentence, pads=source_pads) if model.config.has_encoder else None
        read = source, prompt_of(checkpoint, sentence)
    source, prompt = read
    forced_ids = forced_tokens(checkpoint, forced, sentence)
    limit = _length_limit(checkpoint, source, prompt, forced_ids, strategy.max_new_tokens)
    with _locate_not_finite(checkpoint, source, prompt, edits), torch.inference_mode():
        if isinstance(strategy, Beam):
            return _beam(checkpoint, source, prompt, forced_ids, strategy, limit, edits, recorder)
        # Only the step itself shows what an edit or a hook does to it, and what it computes without a cache.
        hooked, in_decoder = has_forward_hooks(model), any(not edit.name.startswith("encoder.") for edit in edits)
        changed = bool(edits) or hooked
        if changed or record_steps:  # otherwise nothing is recorded, whatever the length
            check_recording(model, source=0 if source is None else source.shape[1], target=len(prompt))
        switches = any(len(prompt) <= length < len(prompt) + limit for length in model.config.switch_lengths)
        step_by_step = record_steps and (changed or switches or not cached)
        state = None
        generator = torch.Generator().manual_seed(strategy.seed) if isinstance(strategy, Sample) else None
        ids: list[int] = []
        rows: list[Tensor] = []
        recorded: list[Mapping[str, Activation]] = []
        while len(ids) < limit and (not ids or ids[-1] not in framing.ends):
            # The encoder runs in the first step only: its edits affect later steps through the memory.
            watched = in_decoder or hooked or step_by_step or (edits and state is None)
            with record(edits) if watched else fast_path() as recording:
                state = state or DecodingState(model, source, cached=cached and not in_decoder, hooked=hooked)
                logits = state.feed(torch.tensor([ids[-1:] or prompt], device=device))[0]
            check_logits(logits, ids)
            rows.append(writable(logits.cpu(), framing.never))
            ids.append(forced_ids[len(ids)] if len(ids) < len(forced_ids) else _choose(rows[-1], strategy, generator))
            if step_by_step and recording is not None:
                recorded.append(Recorded(model, recording=recording))
        logits = torch.stack(rows)
        activations: Sequence[Mapping[str, Activation]] = recorded
        if record_steps and not step_by_step:
            activations, logits = _recorded_steps(checkpoint, source, prompt, ids)
        chances = _chances(logits, strategy)
    return _decoding(checkpoint, source, prompt, ids, logits, chances, activations)


@contextmanager
def _locate_not_finite(
    checkpoint: Checkpoint, source: Tensor | None, prompt: Sequence[int], edits: tuple[Edit, ...]
) -> Iterator[None]:
    """Add to a ``NotFiniteError`` the first activation that is not finite, found in one recorded pass."""
    try:
        yield
    except NotFiniteError as error:
        model, read = checkpoint.model, [*prompt, *error.written]
        with torch.inference_mode(), record(edits) as recording:
            DecodingState(model, source, cached=False).feed_all(torch.tensor([read], device=model.device))
        # a hook made a number infinite in one step only
        if (found := first_not_finite(Recorded(model, recording=recording))) is None:
            raise
        ids = source[0].tolist() if found.stack == "encoder" and source is not None else read
        explained = not_finite_error(found, checkpoint.tokenizer.sequence(ids, found.stack), edited=bool(edits))
        explained.written = error.written
        raise explained from error


def _recorded_steps(
    checkpoint: Checkpoint, source: Tensor | None, prompt: Sequence[int], ids: Sequence[int]
) -> tuple[Sequence[Mapping[str, Activation]], Tensor]:
    """Return activations of every step and logits, [step, vocabulary], from one pass over the text."""
    model = checkpoint.model
    read = torch.tensor([[*prompt, *ids[:-1]]], device=model.device)
    whole = Recorded(model, [read] if source is None else [source, read])
    stops = range(len(prompt), len(prompt) + len(ids))
    steps = [whole.step(stop - 1 if stop > len(prompt) else 0, stop) for stop in stops]
    logits = torch.from_numpy(whole["decoder.logits"].values[len(prompt) - 1 :].copy())
    return steps, writable(logits, checkpoint.framing.never)


def forced_tokens(checkpoint: Checkpoint, forced: str | Sequence[int], sentence: str = "") -> list[int]:
    """Return the token ids that an output must begin with.

    Raises:
        ValueError: If no output can contain these ids: ``</s>`` can only come last.
    """
    if isinstance(forced, str):
        return target_ids(checkpoint, forced, sentence) if forced else []
    ids = [int(id) for id in forced]
    size, framing, display = checkpoint.config.vocabulary_size, checkpoint.framing, checkpoint.tokenizer.display
    for place, id in enumerate(ids):
        if not 0 <= id < size or id in framing.never or (id in framing.ends and place < len(ids) - 1):
            never, ends = (" and ".join(map(display, ids)) for ids in (framing.never, framing.ends))
            raise ValueError(
                f"forced token {place} is {id}; give ids of 0 to {size - 1}{f' without {never}' if never else ''}, "
                f"and {ends} only as the last"
            )
    return ids


def _chances(logits: Tensor, strategy: Greedy | Sample) -> Tensor:
    if isinstance(strategy, Greedy):
        return torch.softmax(logits, dim=-1)
    shaped = reshape_logits(logits, temperature=strategy.temperature, top_k=strategy.top_k, top_p=strategy.top_p)
    return torch.softmax(shaped, dim=-1)


def _choose(logits: Tensor, strategy: Greedy | Sample, generator: torch.Generator | None) -> int:
    if isinstance(strategy, Greedy):
        return int(logits.argmax())
    return int(torch.multinomial(_chances(logits, strategy), 1, generator=generator))


def _length_limit(
    checkpoint: Checkpoint, source: Tensor | None, prompt: list[int], forced: list[int], wanted: int | None
) -> int:
    """Return how many tokens may be generated: at least the forced ones, at most ``max_length`` positions."""
    given = len(prompt) + len(forced)
    room = checkpoint.config.max_length - len(prompt)
    if room < len(forced) + 1:
        raise InputError(
            f"The text has {given} tokens, and this model sees at most {checkpoint.config.max_length}: there "
            "is no room to write. Shorten it."
        )
    usual = len(forced) + (CONTINUATION if source is None else 2 * source.shape[1] + 10)
    return min(room, max(len(forced), usual if wanted is None else wanted))


def _decoding(
    checkpoint: Checkpoint,
    source: Tensor | None,
    prompt: Sequence[int],
    ids: Sequence[int],
    logits: Tensor,  # [step, vocabulary]
    chances: Tensor,  # [step, vocabulary]
    activations: Sequence[Mapping[str, Activation]] = (),
    hypotheses: tuple[Hypothesis, ...] = (),
) -> Decoding:
    """Return a text with its steps, whose candidates are found for all steps at once."""
    tokenizer, chosen = checkpoint.tokenizer, torch.tensor(ids)[:, None]
    probabilities = torch.softmax(logits, dim=-1)
    best = probabilities.topk(min(N_CANDIDATES, probabilities.shape[-1]), dim=-1).indices
    listed = torch.cat((best, chosen), dim=-1)  # [step, candidate]: the chosen one comes last
    columns = [tensor.gather(-1, listed).tolist() for tensor in (logits, probabilities, chances)]
    steps = []
    for index, rows in enumerate(zip(listed.tolist(), *columns, strict=True)):
        *candidates, last = (Candidate(id, tokenizer.display(id), *values) for id, *values in zip(*rows, strict=True))
        recorded = activations[index] if activations else {}
        steps.append(Step(index, tuple(candidates), last, logits[index].numpy(), recorded))
    log_p = log_probabilities(logits).gather(-1, chosen)
    return Decoding(
        text=tokenizer.decode([*prompt, *ids]),
        source=None if source is None else tokenizer.sequence(source[0].tolist()),
        tokens=tokenizer.sequence(ids, "prediction"),
        steps=tuple(steps),
        log_probability=float(log_p.sum(dtype=torch.float64)),
        finished=bool(ids) and ids[-1] in checkpoint.framing.ends,
        hypotheses=hypotheses,
    )


def _beam(
    checkpoint: Checkpoint,
    source: Tensor | None,
    prompt: list[int],
    forced: list[int],
    strategy: Beam,
    limit: int,
    edits: tuple[Edit, ...],
    recorder: SearchRecorder | None = None,
) -> Decoding:
    with record(edits) if edits or has_forward_hooks(checkpoint.model) else fast_path():
        found = beam_search(
            checkpoint.model,
            source,
            prompt,
            strategy,
            limit,
            forced=forced,
            cached=not edits,
            banned=checkpoint.framing.never,
            ends=checkpoint.framing.ends,
            recorder=recorder,
            text_of=checkpoint.tokenizer.decode,
        )
        # One pass over the best text gives the logits of all its steps; it takes two if the text outgrew a switch
        # length.
        state = DecodingState(checkpoint.model, source, cached=False)
        whole = torch.tensor([prompt + list(found[0].ids)], device=checkpoint.model.device)
        cuts = sorted(length for length in checkpoint.config.switch_lengths if length < whole.shape[1])
        parts = whole.tensor_split(cuts, dim=1)
        logits = writable(torch.cat([state.feed_all(part)[0] for part in parts]).cpu(), checkpoint.framing.never)
    rows = logits[len(prompt) - 1 : -1]
    chances = log_probabilities(rows).exp()
    return _decoding(checkpoint, source, prompt, found[0].ids, rows, chances, hypotheses=tuple(found))
