"""What a model was asked in a trace: which rows of its logits the answer came from, and what was chosen there."""

from dataclasses import dataclass

import numpy as np

from transformer.files.checkpoints import Checkpoint
from transformer.runs.inputs import prompt_ids
from transformer.runs.traces import Trace


@dataclass(frozen=True)
class Asked:
    """``rows`` of the activation ``logits``; in each, the id (or class) that was chosen and how it is shown.

    ``everywhere``: a masked-token model that had no blank to fill; what counts is what it says at every real token.
    """

    logits: str
    rows: tuple[int, ...]
    ids: tuple[int, ...]
    displays: tuple[str, ...]
    everywhere: bool = False

    def log_probabilities(self, trace: Trace) -> np.ndarray:
        """ln p of everything that could have stood there: [row, vocabulary] (or [1, class]), in float64.

        Raises ``NotFiniteError`` for a trace with NaN or infinite numbers, which would compare as equal to anything.
        """
        trace.check_finite()
        return self.log_softmax(trace.checkpoint, trace.values(self.logits))

    def log_softmax(self, checkpoint: Checkpoint, logits: np.ndarray) -> np.ndarray:
        """The same from other ``logits`` of the same tokens.

        What a model that writes is never let write (``<pad>`` and ``<s>`` as a rule) has −∞, as in ``decode``.
        """
        logits = np.atleast_2d(logits)[list(self.rows)].astype(np.float64)
        if checkpoint.config.has_decoder:
            logits[:, list(checkpoint.framing.never)] = -np.inf
        shifted = logits - logits.max(axis=-1, keepdims=True, initial=-np.inf)
        return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))

    def chosen(self, log_probabilities: np.ndarray) -> np.ndarray:
        """Of [row, vocabulary] the values of what was chosen: [row]."""
        return log_probabilities[np.arange(len(self.ids)), list(self.ids)]


def asked(trace: Trace) -> Asked:
    """What ``trace`` is the answer to.

    A classifier: its verdict. An encoder without a head: nothing. A decoder: every token that it wrote, or that
    somebody gave; the ``</s>`` behind a given answer is neither, and a model that would have gone on finds it so
    improbable that it would outweigh every word. A masked-token model: its blanks, or without any blank every token
    that is not special, with the token that the model finds most probable there.
    """
    config = trace.checkpoint.config
    if config.n_classes:
        best = int(trace.values("classifier.logits").argmax())
        return Asked("classifier.logits", (0,), (best,), (config.class_names[best],))
    if config.encodes_sentences:
        return Asked("pooling.vector", (), (), ())
    everywhere = False
    if config.has_decoder:
        # A decoder-only model is asked from the last token of the prompt on; everything before was typed.
        first = 0 if config.has_encoder else len(prompt_ids(trace.checkpoint, trace.sentence)) - 1
        rows = [token.index for token in trace.prediction if token.index >= first and token.role != "pad"]
        if trace.forced and len(rows) > 1 and trace.prediction[rows[-1]].role == "end":
            rows.pop()
    else:
        rows = [token.index for token in trace.source if token.role == "mask"]
        if everywhere := not rows:
            rows = [token.index for token in trace.source if not token.special]
    tokens = [trace.prediction[row] for row in rows]
    logits = "decoder.logits" if config.has_decoder else "encoder.logits"
    ids, displays = tuple(token.id for token in tokens), tuple(token.display for token in tokens)
    return Asked(logits, tuple(rows), ids, displays, everywhere)
