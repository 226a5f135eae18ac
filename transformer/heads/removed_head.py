"""What a model loses without one head: alone, and with similar heads removed too.

A head that is not needed alone may be one of several with the same role; and later parts may compensate for its
contribution ("self-repair": McGrath et al. 2023; Rushing & Nanda 2024).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from transformer.attribution.direct_logit_attribution import Attribution, attribute
from transformer.errors import InputError
from transformer.files.checkpoints import Checkpoint
from transformer.heads.firing_examples import Progress
from transformer.interventions.direct_effects import remove_parts
from transformer.interventions.experiment import experiment
from transformer.layers.residual_stream import Part
from transformer.predictions.answer_probabilities import prediction_rows
from transformer.probes import Edit
from transformer.runs.edits import ablate_head
from transformer.runs.head_places import Head
from transformer.runs.readings import nothing_read_error, with_task
from transformer.runs.traces import Trace
from transformer.runs.tracing import trace

MAX_TRACED = 12
MAX_WORDS = 12  # words of each output; an attribution takes one pass over the layers per word


@dataclass(frozen=True)
class RemovedHead:
    """Means over the ``n_words`` words of the outputs for ``n_sentences`` sentences.

    Attributes:
        alone: Change of log p of the word without the head.
        together: The same without the head and its ``group``; NaN if it has none.
        added: What the head added to logit(word) − logit(alternative), [word]; empty if the head has no direct path to
            the words.
        lost: How much that difference falls without the head at that word, [word].
    """

    n_sentences: int
    n_words: int
    group: tuple[Head, ...]
    alone: float
    together: float
    added: np.ndarray
    lost: np.ndarray


def removed_head(
    checkpoint: Checkpoint,
    sentences: Sequence[str],
    head: Head,
    group: Sequence[Head] = (),
    *,
    most: int = MAX_TRACED,
    progress: Progress | None = None,
) -> RemovedHead:
    """Measure the first ``most`` of ``sentences`` that can be read.

    ``group`` are the other heads with the same role. ``progress(done, total)`` counts sentences.

    Raises:
        InputError: If no sentence can be read.
    """
    part, apart = Part(f"{head.kind}_attention", head.layer, head.head), [_without(head)]
    changes: list[np.ndarray] = []  # [alone or together, word] of each sentence
    added, lost = [], []
    for text in sentences:
        if len(changes) == most:
            break
        try:
            one = trace(checkpoint, with_task(checkpoint, text))
        except InputError:  # the sentence is empty or too long
            continue
        ways = (apart, [*apart, *map(_without, group)]) if group else (apart,)
        effects = [experiment(one, edits) for edits in ways]
        changes.append(np.stack([effect.after - effect.before for effect in effects]))
        for word in answered_words(one):
            if part in word.parts and word.question.stack == head.stack:
                without = remove_parts(one, word, [part])
                added.append(float(without.added[0]))
                lost.append(float(without.zero[0]))
        if progress is not None:
            progress(len(changes), min(most, len(sentences)))
    if not changes:
        raise nothing_read_error(checkpoint, len(sentences))
    whole = np.concatenate(changes, axis=1)
    means = whole.mean(axis=1) if whole.size else np.full(len(whole), np.nan)
    together = float(means[1]) if group else float("nan")
    return RemovedHead(
        len(changes), whole.shape[1], tuple(group), float(means[0]), together, np.array(added), np.array(lost)
    )


def answered_words(one: Trace) -> Iterator[Attribution]:
    """Yield the attribution of every word of the output against the most likely alternative."""
    question = prediction_rows(one)
    logits = np.atleast_2d(one.values(question.logits))
    for row, token in list(zip(question.rows, question.ids, strict=True))[:MAX_WORDS]:
        others = np.argsort(-logits[row], kind="stable")[:2]
        against = int(others[1] if others[0] == token else others[0])
        yield attribute(one, None if question.logits == "classifier.logits" else row, token=token, against=against)


def _without(head: Head) -> Edit:
    return ablate_head(head.stack, layer=head.layer, kind=head.kind, head=head.head)
