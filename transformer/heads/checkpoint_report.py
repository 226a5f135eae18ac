"""Report on a checkpoint over many sentences: roles, habits, importance, attribution, examples.

These are the numbers of ``python -m transformer explain``. Roles, habits and examples use all sentences. Importance
(Michel et al. 2019) and attribution need one trace per sentence, so they use the first ``MAX_TRACED`` that can be read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from transformer.attribution.direct_logit_attribution import Attribution, attribute
from transformer.errors import InputError
from transformer.files.checkpoints import Checkpoint
from transformer.heads.firing_examples import Firing, head_firings
from transformer.heads.head_atlas import HeadHabits, head_habits
from transformer.heads.head_roles import CorpusRoles, corpus_roles
from transformer.heads.role_measures import n_annotated
from transformer.interventions.head_importance import head_importance
from transformer.layers.residual_stream import Part
from transformer.predictions.answer_probabilities import prediction_rows
from transformer.runs.head_places import Head
from transformer.runs.traces import Trace
from transformer.runs.tracing import trace

MAX_TRACED = 12
MAX_WORDS = 12  # words of each output; an attribution takes one pass over the layers per word
EXAMPLES = 5
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Importance:
    """Effect of removing one head: means of ``HeadImportance.change`` and ``.kl``."""

    change: float
    kl: float


@dataclass(frozen=True)
class Share:
    """Contribution of one part to the ``n_words`` words of all outputs.

    These are the mean of what it added to logit(word) − logit(alternative), and the mean of its absolute value.
    """

    mean: float
    size: float


@dataclass(frozen=True, eq=False)
class CheckpointReport:
    """Report on one checkpoint.

    Attributes:
        traced: Indices of the sentences used for ``importance`` and ``parts``.
        n_words: Number of predicted words in these sentences.
        gated: Whether the last step is not linear, so that attributions do not sum to the logits
            (``Attribution.gated``).
    """

    checkpoint: Checkpoint
    sentences: tuple[str, ...]
    roles: CorpusRoles
    habits: Mapping[Head, HeadHabits]
    firings: Mapping[Head, tuple[Firing, ...]]
    traced: tuple[int, ...]
    importance: Mapping[Head, Importance]
    parts: Mapping[Part, Share]
    n_words: int
    gated: bool


def checkpoint_report(
    checkpoint: Checkpoint, sentences: Sequence[str], *, progress: Progress | None = None
) -> CheckpointReport:
    """Build the complete report.

    ``progress(done, total)`` counts the sentences that were read, some of them four times.

    Raises:
        InputError: If no sentence can be read.
    """
    n, n_roles = len(sentences), len(sentences) + n_annotated(checkpoint)
    total = n_roles + 2 * n + min(n, MAX_TRACED)

    def tell(before: int) -> Progress:
        return lambda done, _total: progress(before + done, total) if progress is not None else None

    roles = corpus_roles(checkpoint, sentences, progress=tell(0))
    habits = head_habits(checkpoint, sentences, progress=tell(n_roles))
    firings = head_firings(checkpoint, sentences, most=EXAMPLES, progress=tell(n_roles + n))
    traced: list[int] = []
    removed: list[Mapping[Head, Importance]] = []
    words: list[Attribution] = []
    for index, text in enumerate(sentences):
        if len(traced) == MAX_TRACED:
            break
        try:
            one = trace(checkpoint, text)
        except InputError:  # the sentence is empty or too long
            continue
        traced.append(index)
        measured = head_importance(one).measured
        removed.append({row.place: Importance(row.change, row.kl) for row in measured})
        words += answered_words(one)
        tell(n_roles + 2 * n)(len(traced), total)
    return CheckpointReport(
        checkpoint,
        tuple(sentences),
        roles,
        habits,
        firings,
        tuple(traced),
        {head: _mean_importance([one[head] for one in removed]) for head in removed[0]},
        _shares(words),
        len(words),
        any(word.gated for word in words),
    )


def answered_words(one: Trace) -> Iterator[Attribution]:
    """Yield the attribution of every word of the output against the most likely alternative."""
    question = prediction_rows(one)
    logits = np.atleast_2d(one.values(question.logits))
    for row, token in list(zip(question.rows, question.ids, strict=True))[:MAX_WORDS]:
        others = np.argsort(-logits[row], kind="stable")[:2]
        against = int(others[1] if others[0] == token else others[0])
        yield attribute(one, None if question.logits == "classifier.logits" else row, token=token, against=against)


def _mean_importance(found: Sequence[Importance]) -> Importance:
    return Importance(*(float(np.mean([getattr(one, name) for one in found])) for name in ("change", "kl")))


def _shares(words: Sequence[Attribution]) -> dict[Part, Share]:
    """Return the mean contributions; a part that is missing for a word adds 0 to it."""
    if not words:
        return {}
    parts = dict.fromkeys(part for word in words for part in word.parts)
    found = [dict(zip(word.parts, word.values, strict=True)) for word in words]
    values = {part: np.array([one.get(part, 0.0) for one in found]) for part in parts}
    return {part: Share(float(own.mean()), float(np.abs(own).mean())) for part, own in values.items()}
