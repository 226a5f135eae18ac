"""One run compared with the same run under a change: edits, a mask, another checkpoint or sentence.

All pages of the laboratory, and a notebook, ask the same questions about such a pair: how probable is the original
output now, how far have the predictions moved, and what does the changed model generate by itself?
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch

from transformer.errors import InputError
from transformer.files.checkpoints import Checkpoint
from transformer.predictions.answer_probabilities import (
    Answer,
    AnswerPart,
    PredictionRows,
    divergence,
    prediction_rows,
    read_answer,
)
from transformer.predictions.comparison import head_differences
from transformer.predictions.sweep import text_of
from transformer.predictions.target import shown_word
from transformer.probes import Edit, record
from transformer.runs.decoding import Decoding, decode
from transformer.runs.decoding_strategies import Greedy, Strategy
from transformer.runs.edit_specs import edits_from
from transformer.runs.edits import check_edits
from transformer.runs.head_places import Head
from transformer.runs.inputs import padding_ids, prompt_ids, prompt_of, source_tensor, target_ids
from transformer.runs.recorded import Recorded
from transformer.runs.run import Run
from transformer.runs.traces import Trace
from transformer.runs.tracing import add_predicted_output, trace_of


class CandidateChange(NamedTuple):
    """One candidate for the next token, with its probability in the original and in the changed run."""

    display: str
    before: float
    after: float
    chosen: bool


class Expectation(NamedTuple):
    """The most likely token in one row of each run, with its probability there.

    ``read`` is the token that the row reads, ``position`` its position.
    """

    read: str
    before: str
    probability_before: float
    after: str
    probability_after: float
    position: int


@dataclass(frozen=True)
class Experiment:
    """An ``original`` and a ``changed`` run; each comparison is computed once, when it is first read.

    >>> import transformer
    >>> from transformer.interventions.experiment import experiment
    >>> checkpoint = transformer.load("checkpoints/en-fr-sharp")
    >>> trace = transformer.trace(checkpoint, "The cat is on the mat.")
    >>> found = experiment(trace, transformer.edits_from(checkpoint, ["drop:decoder.1.cross"]))
    >>> print(f"{found.answer_before.text} {found.answer_after.text} log p changes by {found.change:.1f} nats")
    Le chat est sur le tapis. Le chat est en tapisant. log p changes by -1.0 nats

    Attributes:
        original: The original run.
        changed: The changed run.
        strategy: Decoding strategy of both models' own outputs, if it differs from that of their runs.
        same_answer: Whether the changed run reads another sentence of the same length with the original output.
    """

    original: Trace
    changed: Trace
    strategy: Strategy | None = None
    same_answer: bool = False

    @cached_property
    def asked(self) -> PredictionRows:
        """Rows of the logits that the original output was predicted from."""
        return prediction_rows(self.original)

    @cached_property
    def same_tokens(self) -> bool:
        """Whether both runs read the same tokens, so that their rows correspond one to one."""
        return text_of(self.original) == text_of(self.changed)

    @property
    def before(self) -> np.ndarray:
        """Log probability of every token of the original output in the original run, in nats: [token]."""
        return self._compared[0]

    @property
    def after(self) -> np.ndarray:
        """Log probability of the same tokens in the changed run, in nats: [token]."""
        return self._compared[1]

    @property
    def change(self) -> float:
        """Σ log p of the original output after − before, in nats; below 0 if it has become less likely."""
        return float((self.after - self.before).sum())

    @property
    def factor(self) -> float:
        """Factor by which the probability of the whole original output is multiplied."""
        return float(np.exp(self.change))

    @property
    def kl(self) -> np.ndarray:
        """KL(original ‖ changed) of the distribution at each token of the output, in nats: [token]."""
        return self._compared[2]

    @property
    def predicted(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Most likely id in every row of the output, in the original and in the changed run."""
        (before, _), (after, _) = self._most_likely
        return before, after

    @cached_property
    def _most_likely(self) -> tuple[tuple[tuple[int, ...], np.ndarray], ...]:
        """The most likely id in every row and its probability, in the original and in the changed run."""
        logs = self._log_probabilities(self.asked)
        return tuple((tuple(log_p.argmax(axis=-1).tolist()), np.exp(log_p.max(axis=-1))) for log_p in logs)

    @cached_property
    def _compared(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        log_p, log_q = self._log_probabilities(self.asked)
        return self.asked.chosen(log_p), self.asked.chosen(log_q), divergence(log_p, log_q)

    @property
    def mean_kl(self) -> float:
        """Mean of ``kl`` over the tokens of the output; 0 if nothing was predicted."""
        return float(self.kl.mean()) if self.kl.size else 0.0

    @cached_property
    def answer_before(self) -> Answer:
        """Output that the original model generates by itself, whatever target it was given."""
        return self._own_answer(self.original, wrote=not self.original.forced)

    @cached_property
    def answer_after(self) -> Answer:
        """Output that the changed model generates by itself."""
        if self.changed is self.original:
            return self.answer_before
        return self._own_answer(self.changed, wrote=not (self.changed.forced or self.same_tokens))

    def _own_answer(self, trace: Trace, *, wrote: bool) -> Answer:
        """Return the output of a model; ``wrote`` says whether the trace holds tokens that it generated."""
        run = trace.run
        if not run.checkpoint.config.has_decoder:
            return read_answer(add_predicted_output(trace))
        if wrote and self.strategy is None:
            return read_answer(trace)
        read = None  # the source as tokenised for the trace, including padding
        if trace.source is not None:
            source = torch.tensor([trace.source.ids], device=run.checkpoint.model.device)
            read = source, prompt_of(run.checkpoint, run.sentence)
        strategy = self.strategy or run.strategy or self._as_long_as_target()
        return _as_answer(run.checkpoint, decode(run.checkpoint, run.sentence, strategy, edits=run.edits, read=read))

    def _as_long_as_target(self) -> Strategy | None:
        """Return greedy decoding of as many tokens as a given continuation has; ``None`` without one.

        A language model that does not end by itself would otherwise go on far beyond what it is compared with.
        """
        run = self.original.run
        if run.checkpoint.config.has_encoder or not run.target:
            return None
        return Greedy(len(target_ids(run.checkpoint, run.target, run.sentence)))

    @property
    def predicts_otherwise(self) -> bool:
        """Whether the changed model generates another output or, without one, predicts other tokens."""
        if self.answer_after.text != self.answer_before.text:
            return True
        return self.asked.everywhere and self.predicted[0] != self.predicted[1]

    def expectations(self, *, shown: int = 4) -> tuple[Expectation, ...]:
        """Return the most likely token of the rows that change most, those with another such token first."""
        (before, chances_before), (after, chances_after) = self._most_likely
        rows = [int(row) for row in np.argsort(-self.kl, kind="stable")]
        other = [row for row in rows if before[row] != after[row]]
        read, display = self.original.tokens(self.original.stacks[-1]), self.original.checkpoint.tokenizer.display
        found = []
        for row in (other or rows)[:shown]:
            was = display(before[row]), float(chances_before[row])
            now = display(after[row]), float(chances_after[row])
            found.append(Expectation(read[self.asked.rows[row]].display, *was, *now, self.asked.rows[row]))
        return tuple(found)

    @cached_property
    def head_differences(self) -> dict[tuple[str, str], np.ndarray]:
        """Jensen–Shannon divergence between each head's two maps in bits, [layer, head], by stack and kind."""
        kinds = [kind for kind in self.original.attention_kinds() if kind in self.changed.attention_kinds()]
        return {kind: head_differences(self.original, self.changed, *kind) for kind in kinds}

    @cached_property
    def most_changed_head(self) -> Head | None:
        """Return the head whose two maps differ most; ``None`` if no tokens correspond."""
        found = [
            (float(far), Head(stack, kind, layer, head))
            for (stack, kind), distances in self.head_differences.items()
            for (layer, head), far in np.ndenumerate(distances)
            if not np.isnan(far)
        ]
        return max(found, key=lambda one: one[0])[1] if found else None

    def candidates(self, step: int, *, shown: int = 6) -> tuple[CandidateChange, ...]:
        """Return the most likely candidates for one token in both runs, by their probability before."""
        if not 0 <= step < len(self.asked.ids):
            raise ValueError(f"there is no step {step}; the answer has {len(self.asked.ids)} tokens")
        rows = [
            np.exp(log_p[0]) for log_p in self._log_probabilities(replace(self.asked, rows=(self.asked.rows[step],)))
        ]
        chosen = self.asked.ids[step]
        best = {int(id) for row in rows for id in row.argsort()[::-1][:shown]} | {chosen}
        return tuple(
            CandidateChange(shown_word(self.original.checkpoint, id), *(float(row[id]) for row in rows), id == chosen)
            for id in sorted(best, key=lambda id: -rows[0][id])
        )

    def _log_probabilities(self, asked: PredictionRows) -> list[np.ndarray]:
        """Return the log probabilities of everything possible in the rows of ``asked``, for both runs."""
        if not (self.same_tokens or self.same_answer):
            raise ValueError(
                f"the two runs read other tokens ({self.original.sentence!r}, {self.changed.sentence!r}); the log "
                "probability of an answer needs the same answer in both: give edits, a checkpoint, or keep_answer"
            )
        return [asked.log_probabilities(run) for run in (self.original, self.changed)]


def experiment(
    trace: Trace,
    edits: Iterable[Edit] = (),
    *,
    checkpoint: Checkpoint | None = None,
    sentence: str | None = None,
    keep_answer: bool = False,
    strategy: Strategy | None = None,
) -> Experiment:
    """Run a trace again under a change, and compare.

    Args:
        trace: The original run.
        edits: Changes to the model for this run only; a mask is an edit, too (``transformer.runs.mask_edits``).
        checkpoint: Another model with the same tokenizer, such as a faulty model or a quantised file.
        sentence: Another sentence, for which the model generates its own output. Otherwise both runs read the same
            tokens (teacher forcing), and only then can their log probabilities be compared.
        keep_answer: Whether the other ``sentence``, which must be of the same length, is read with the original output
            (teacher forcing), so that every activation and every row of logits has its counterpart.
        strategy: Decoding strategy of both models' own outputs, if it differs from that of the trace.

    Raises:
        ValueError: If an edit does not fit the model.
        InputError: If the model cannot take the sentence.
        NotFiniteError: If an activation of either run is NaN or infinite, so that nothing can be compared.
    """
    edits, checkpoint = tuple(edits), checkpoint or trace.checkpoint
    if sentence is not None and not keep_answer:
        run = replace(trace.run, checkpoint=checkpoint, edits=edits, sentence=sentence, target=None)
        return Experiment(trace, trace_of(run), strategy)
    changed = trace
    if sentence is not None:
        changed = _same_answer(trace, sentence, edits, checkpoint)
    elif edits or checkpoint is not trace.checkpoint:
        changed = same_tokens(trace, edits, checkpoint=checkpoint)
    for run in (trace, changed):
        run.check_finite()
    return Experiment(trace, changed, strategy, same_answer=sentence is not None)


def same_tokens(trace: Trace, edits: Iterable[Edit] = (), *, checkpoint: Checkpoint | None = None) -> Trace:
    """Run the tokens of ``trace`` again, with ``edits`` or through another ``checkpoint``.

    The activations of the result are new; its tokens and output are those of ``trace``.
    """
    run = replace(trace.run, checkpoint=checkpoint or trace.checkpoint, edits=tuple(edits))
    return _record_again(replace(trace, run=run))


def _record_again(read: Trace) -> Trace:
    """Return a trace with the activations that its run has over its own tokens."""
    checkpoint, edits = read.checkpoint, read.run.edits
    check_edits(checkpoint.model.probes, edits)
    sequences = [tokens for tokens in (read.source, read.target) if tokens is not None]
    inputs = [torch.tensor([tokens.ids], device=checkpoint.model.device) for tokens in sequences]
    return replace(read, activations=Recorded(checkpoint.model, inputs, edits))


def _same_answer(trace: Trace, sentence: str, edits: tuple[Edit, ...], checkpoint: Checkpoint) -> Trace:
    """Run ``sentence`` with the output of ``trace``, whose tokens keep their positions."""
    side = "source" if checkpoint.config.has_encoder else "target"
    own, pads = getattr(trace, side), trace.run.source_pads
    other, typed = typed_ids(checkpoint, sentence, pads), typed_ids(checkpoint, trace.sentence, pads)
    check_pair(typed, other)
    tokens = checkpoint.tokenizer.sequence(other + list(own.ids)[len(typed) :], own.name)
    run = replace(trace.run, checkpoint=checkpoint, edits=(*trace.run.edits, *edits), sentence=sentence)
    return _record_again(replace(trace, run=run, forced=checkpoint.config.has_decoder, **{side: tokens}))


def check_pair(clean: Sequence[int], corrupted: Sequence[int]) -> None:
    """Check that the tokens of two sentences can be compared position by position.

    Raises:
        InputError: If they differ in number, or not at all.
    """
    if len(corrupted) != len(clean):
        raise InputError(
            f"The corrupted sentence has {len(corrupted)} tokens, the clean one {len(clean)}. Every "
            "activation needs its counterpart: replace a word by one with as many tokens."
        )
    if corrupted == clean:
        raise InputError("The corrupted sentence is the same as the clean one. Replace a word by another.")


def typed_ids(checkpoint: Checkpoint, sentence: str, pads: int = 0) -> list[int]:
    """Return what the model reads of a sentence, before any output.

    Raises:
        InputError: If the model cannot take the sentence.
    """
    if checkpoint.config.has_encoder:
        return source_tensor(checkpoint, sentence, pads=pads)[0].tolist()
    return prompt_ids(checkpoint, sentence)


def answer_under(
    checkpoint: Checkpoint,
    sentence: str,
    edits: Iterable[Edit] = (),
    *,
    pads: int = 0,
    strategy: Strategy | None = None,
) -> Answer:
    """Return the output that a model generates by itself with ``edits``.

    The probability of a token is the one at the time it was generated; the model is not run again over the text.
    ``pads`` is the number of padding tokens added to the source.
    """
    edits, pads = tuple(edits), pads if checkpoint.config.has_encoder else 0
    if not checkpoint.config.has_decoder:
        return read_answer(trace_of(Run(checkpoint, sentence, edits=edits, source_pads=pads)))
    return _as_answer(checkpoint, decode(checkpoint, sentence, strategy, edits=edits, source_pads=pads))


def _as_answer(checkpoint: Checkpoint, written: Decoding) -> Answer:
    parts = tuple(AnswerPart(step.chosen.display, step.chosen.probability) for step in written.steps)
    return Answer(checkpoint.tokenizer.decode(written.tokens.ids), parts)


PADS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class PaddingDrift:
    """Effect of ``pads`` padding tokens after the sentence, ``masked`` or not, compared with no padding.

    Attributes:
        logits: Largest |Δ logit| in the rows of the real tokens.
        change: Σ log p of the output's tokens with padding − without, in nats.
        text: Output with padding.
    """

    pads: int
    masked: bool
    logits: float
    change: float
    text: str


def padding_drift(trace: Trace, *, pads: Sequence[int] = PADS) -> tuple[PaddingDrift, ...]:
    """Pad the sentence of ``trace`` (made without padding) by ``pads``, with the mask and without it.

    The padded text is an encoder's sentence, or the text of a decoder-only model at its end, where its causal mask
    hides the padding, too. Lengths that the model cannot read are left out. With the mask, Δ is due to rounding: longer
    sums are added in another order.
    """
    checkpoint, config = trace.checkpoint, trace.checkpoint.config
    if any(token.is_padding for tokens in (trace.source, trace.target) for token in tokens or ()):
        raise ValueError("this trace holds padding already; make it without")
    question = prediction_rows(trace)
    before = question.log_probabilities(trace)
    plain = np.atleast_2d(trace.values(question.logits)).astype(np.float64)
    padded = trace.source if config.has_encoder else trace.target
    # As many tokens as without padding, since the limit on the output depends on the length of the source.
    strategy = Greedy(2 * len(trace.source) + 10) if trace.source and trace.target else None
    found = []
    for count in (count for count in pads if len(padded) + count <= config.max_length):
        for masked in (True, False):
            edits = [] if masked else without_padding_mask(checkpoint)
            logits = _padded_logits(trace, count, edits)[: len(plain)]
            after = question.log_softmax(checkpoint, logits)
            found.append(
                PaddingDrift(
                    count,
                    masked,
                    float(np.abs(logits - plain).max()),
                    float((question.chosen(after) - question.chosen(before)).sum()),
                    answer_under(checkpoint, trace.sentence, edits, pads=count, strategy=strategy).text,
                )
            )
    return tuple(found)


def without_padding_mask(checkpoint: Checkpoint) -> list[Edit]:
    """Return edits that let every attention layer attend to padding."""
    config = checkpoint.config
    kinds = ["encoder.*.self"] if config.has_encoder else []
    if config.has_decoder:
        kinds.append("decoder.*.cross" if config.has_encoder else "decoder.*.self")
    return edits_from(checkpoint, [f"mask:{kind}=no_padding" for kind in kinds])


def _padded_logits(trace: Trace, count: int, edits: Sequence[Edit]) -> np.ndarray:
    """Return logits with ``count`` pads after the tokens of ``trace``: [row, vocabulary] or [1, class]."""
    model = trace.checkpoint.model
    sequences = [list(tokens.ids) for tokens in (trace.source, trace.target) if tokens is not None]
    sequences[0] += padding_ids(trace.checkpoint, count)
    inputs = [torch.tensor([ids], device=model.device) for ids in sequences]
    with torch.inference_mode(), record(edits):
        return np.atleast_2d(model(*inputs)[0].numpy(force=True)).astype(np.float64)
