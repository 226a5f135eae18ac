"""What padding does to an answer: nothing with the padding mask, something without it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from transformer.files.checkpoints import Checkpoint
from transformer.interventions.change_of_answer import answer_under
from transformer.predictions.answer_rows import asked
from transformer.probes import Edit, record
from transformer.runs.decoding_strategies import Greedy
from transformer.runs.inputs import padding
from transformer.runs.mask_edits import no_padding_mask
from transformer.runs.traces import Trace

PADS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class PaddingDrift:
    """``pads`` padding tokens behind the sentence, ``masked`` or not, compared with no padding at all.

    ``logits``: the largest |Δ logit| anywhere in the rows of the real tokens. ``change``: Σ ln p of the answer's tokens
    with the padding − without. ``text``: what the model answers then.
    """

    pads: int
    masked: bool
    logits: float
    change: float
    text: str


def padding_drift(trace: Trace, *, pads: Sequence[int] = PADS) -> tuple[PaddingDrift, ...]:
    """Pad the sentence of ``trace`` (made without pads) by each of ``pads``; every time with the mask and without it.

    An encoder's sentence is padded, or the text of a decoder-only model: at its end, where its causal mask hides the
    padding, too. Lengths that the model cannot read are left out. Δ with the mask is rounding: longer sums are added
    up in another order.
    """
    checkpoint, config = trace.checkpoint, trace.checkpoint.config
    if any(token.is_padding for tokens in (trace.source, trace.target) for token in tokens or ()):
        raise ValueError("this trace holds padding already; make it without")
    question = asked(trace)
    before = question.log_probabilities(trace)
    plain = np.atleast_2d(trace.values(question.logits)).astype(np.float64)
    padded = trace.source if config.has_encoder else trace.target
    # As many tokens as without padding: how long a text may become depends on the length of the source.
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
    """The edits that let every attention layer look at padding."""
    config = checkpoint.config
    kinds = [("encoder", "self")] if config.has_encoder else []
    if config.has_decoder:
        kinds.append(("decoder", "cross" if config.has_encoder else "self"))
    n_layers = {"encoder": config.n_encoder_layers, "decoder": config.n_decoder_layers}
    return [no_padding_mask(stack, layer=layer, kind=kind) for stack, kind in kinds for layer in range(n_layers[stack])]


def _padded_logits(trace: Trace, count: int, edits: Sequence[Edit]) -> np.ndarray:
    """Logits over the tokens of ``trace`` with ``count`` pads behind: [row, vocabulary], or [1, class]."""
    model = trace.checkpoint.model
    sequences = [list(tokens.ids) for tokens in (trace.source, trace.target) if tokens is not None]
    sequences[0] += padding(trace.checkpoint, count)
    inputs = [torch.tensor([ids], device=model.device) for ids in sequences]
    with torch.inference_mode(), record(edits):
        return np.atleast_2d(model(*inputs)[0].numpy(force=True)).astype(np.float64)
