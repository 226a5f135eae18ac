"""What a model loses without one head.

A head that is not needed may be one of several with the same role; and later parts may compensate for its contribution
("self-repair": McGrath et al. 2023; Rushing & Nanda 2024).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from transformer.errors import InputError
from transformer.files.checkpoints import Checkpoint
from transformer.heads.firing_examples import Progress
from transformer.interventions.experiment import experiment
from transformer.runs.edits import ablate_head
from transformer.runs.head_places import Head
from transformer.runs.readings import nothing_read_error, with_task
from transformer.runs.tracing import trace

MAX_TRACED = 12


class RemovedHead(NamedTuple):
    """Mean change of log p without the head, over the ``n_words`` words of all outputs.

    ``alone`` is NaN if nothing was predicted.
    """

    n_sentences: int
    n_words: int
    alone: float


def removed_head(
    checkpoint: Checkpoint,
    sentences: Sequence[str],
    head: Head,
    *,
    most: int = MAX_TRACED,
    progress: Progress | None = None,
) -> RemovedHead:
    """Measure the first ``most`` of ``sentences`` that can be read; ``progress(done, total)`` counts them.

    Raises:
        InputError: If no sentence can be read.
    """
    changes: list[np.ndarray] = []  # [word] of each sentence
    for text in sentences:
        if len(changes) == most:
            break
        try:
            one = trace(checkpoint, with_task(checkpoint, text))
        except InputError:  # the sentence is empty or too long
            continue
        effect = experiment(one, [ablate_head(head.stack, layer=head.layer, kind=head.kind, head=head.head)])
        changes.append(effect.after - effect.before)
        if progress is not None:
            progress(len(changes), min(most, len(sentences)))
    if not changes:
        raise nothing_read_error(checkpoint, len(sentences))
    words = np.concatenate(changes)
    return RemovedHead(len(changes), len(words), float(words.mean()) if words.size else float("nan"))
