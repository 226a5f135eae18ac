"""Role of every head in one sentence, and over many sentences.

In one sentence: where the head attends to, how sharply, and which of a few known roles that is. These roles were found
in trained models: the positions and shapes of ``weight_patterns``, and induction, which needs a text with repetitions.
A role describes the head in this sentence only, and does not say whether the model needs the head.

Over many sentences: the roles sentence by sentence, their means, and the tests of the literature. Voita et al. 2019
("Analyzing Multi-Head Self-Attention", §4 and §5) name a head only if it plays one role in most sentences, and is
confident. One sentence cannot show that.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from transformer.files.checkpoints import Checkpoint
from transformer.heads.induction import LEAST_INDUCTION, InductionTest, induction_test
from transformer.heads.role_measures import (
    PLACES,
    ROLES,
    HeadMeasures,
    LayerCounts,
    add_reading,
    count_annotated,
    head_measures,
    n_annotated,
)
from transformer.heads.weight_patterns import (
    LEAST_BROAD,
    LEAST_MONOTONE,
    LEAST_ROWS,
    count,
    counted_rows,
    least_share,
    patterns_of,
    sentence_counts,
    shape_scores,
)
from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import Head, LocatedAtHead, attention_layers
from transformer.runs.readings import BATCH_SIZE, Reading, nothing_read_error, readings
from transformer.runs.traces import Trace
from transformer.text.sentence_files import sentence_digest

AT_REST = ("first", "sink")  # where a head puts its weight when it has nothing else to attend to
RESTING = (*AT_REST, "punctuation", "delimiter")  # roles of a head that attends to a fixed position
LEAST_AWAKE = 0.1  # share of a row; a head that sends less to what followed does not count as an induction head


class Scored:
    """Base of results with a ``role`` and ``scores``: all measures by name, NaN if undefined."""

    role: str
    scores: Mapping[str, float]

    @property
    def score(self) -> float:
        """Score of the role itself; NaN for "none"."""
        return self.scores.get(self.role, math.nan)

    @property
    def nearest(self) -> str:
        """Kind of position with the largest share, however small; "" if none has any."""
        shares = {place: share for place in PLACES if (share := self.scores.get(place, math.nan)) > 0}
        return max(shares, key=shares.__getitem__, default="")


@dataclass(frozen=True)
class HeadRole(LocatedAtHead, Scored):
    """Role of one head in one sentence.

    Shares are from 0 to 1; "broad" is the entropy as a share of the largest possible, from 0 to 1; "monotone" is from
    −1 to 1; "entropy" is in bits, "distance" in tokens; "confidence" and "sinks" are shares.
    """

    role: str
    scores: Mapping[str, float]


def sentence_roles(view: AttentionView) -> tuple[HeadRole, ...]:
    """Return ``head_roles``, with "induction" if a head sends most to what followed an earlier occurrence.

    Only rows whose token occurred before count, since the head may put its weight on a sink in all others. The share
    must be as clear as for every role (``least_share``, ``LEAST_ROWS``).

    In large models, most of the weight is on sinks in those rows as well. So "induction" is also the role of a head on
    a sink, or of one without a role, if at least ``LEAST_AWAKE`` of a row goes to what followed, and if that is a clear
    share ("awake") of the weight that goes neither to the first token nor to special ones:

        awake = mean of Σ_{j followed} α_ij ÷ mean of Σ_{j not at rest} α_ij
    """
    roles, places = head_roles(view), patterns_of(view)
    if not view.is_causal:  # a head that sees both sides needs no memory of an earlier occurrence
        return roles
    followed = places["after_repeated"] & view.allowed
    rows = followed.any(axis=1) & counted_rows(view)
    if rows.sum() < LEAST_ROWS:
        return roles
    # What is not at rest is summed itself: 1 minus nearly 1 would be mostly rounding.
    elsewhere = view.allowed & (followed | ~(places["first"] | places["sink"]))
    after, not_at_rest = (count(view, cells, rows) for cells in (followed, elsewhere))
    shares, chance = after.shares[:, 0], float(after.chances[0])
    awake = shares / np.maximum(not_at_rest.shares[:, 0], 1e-9)
    least, least_awake = least_share(chance), least_share(chance / float(not_at_rest.chances[0]))
    found = []
    for role, most, of_rest in zip(roles, shares.tolist(), awake.tolist(), strict=True):
        clear = most >= least and not most <= role.score  # a role without a score, "none", does not compete
        clear |= role.role in (*AT_REST, "none") and most >= LEAST_AWAKE and of_rest >= least_awake
        name = "induction" if clear else role.role
        found.append(replace(role, role=name, scores={**role.scores, "induction": most, "awake": of_rest}))
    return tuple(found)


def roles_in(trace: Trace, stack: str, kind: str) -> tuple[HeadRole, ...]:
    """Return ``sentence_roles`` of all heads of one kind of attention, layer by layer."""
    views = (trace.attention(stack, layer, kind) for layer in range(trace.n_layers(stack)))
    return tuple(role for view in views for role in sentence_roles(view))


def head_roles(view: AttentionView) -> tuple[HeadRole, ...]:
    """Return the role of every head of one layer; see ``sentence_counts`` and ``choose_role``."""
    counts = sentence_counts(view)
    chances = {name: float(found.chances[0]) for name, found in counts.items()}
    measured = {name: found.shares[:, 0] for name, found in counts.items()} | shape_scores(view)
    roles = []
    for head in range(view.n_heads):
        scores = {name: float(values[head]) for name, values in measured.items()}
        roles.append(HeadRole(view.stack, view.kind, view.layer, head, choose_role(scores, chances), scores))
    return tuple(roles)


def choose_role(scores: Mapping[str, float], chances: Mapping[str, float]) -> str:
    """Return the kind of position with the largest share if large enough, or a shape, or "none".

    ``least_share`` defines how much is enough.
    """
    clear = [place for place in PLACES if scores.get(place, np.nan) >= least_share(chances.get(place, np.nan))]
    if clear:
        return max(clear, key=lambda place: scores[place])  # the first if there are ties
    if scores.get("broad", np.nan) >= LEAST_BROAD:
        return "broad"
    return "monotone" if scores.get("monotone", np.nan) >= LEAST_MONOTONE else "none"


LEAST_CONSISTENT = 0.5  # a head has a role in general if it has that role in at least half of the sentences
LEAST_LEANING = 0.1  # a less frequent role is not mentioned
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class CorpusRole(LocatedAtHead, Scored):
    """Role of one head over many sentences.

    Attributes:
        shares: For every role the share of the ``n_sentences`` in which the head has it; sentences too short for roles
            do not count.
        role: The most frequent role if its share is at least ``LEAST_CONSISTENT``, else "none".
        scores: Mean of every measure over the ``counts`` sentences in which it is defined (NaN if there are none); in a
            decoder-only model also "induction" and "previous_random" (``transformer.heads.induction``).
        measured: The tests of the literature, counted over the rows of all sentences (``transformer.heads``).
    """

    role: str
    shares: Mapping[str, float]
    scores: Mapping[str, float]
    counts: Mapping[str, int]
    n_sentences: int
    measured: HeadMeasures = field(default_factory=HeadMeasures)

    @property
    def consistency(self) -> float:
        """Share of the sentences in which the head has its most frequent role; NaN if all were too short."""
        return max(self.shares.values(), default=math.nan)

    @property
    def most_frequent(self) -> str:
        """Most frequent role, however rare; "none" also if all sentences were too short."""
        return max(self.shares, key=self.shares.__getitem__, default="none")

    @property
    def leaning(self) -> str:
        """Most frequent role of a head without a clear one, if above ``LEAST_LEANING``; else ""."""
        clear = {role: share for role, share in self.shares.items() if role != "none" and share >= LEAST_LEANING}
        return max(clear, key=clear.__getitem__, default="") if self.role == "none" else ""

    @property
    def is_induction_head(self) -> bool:
        """Whether the head passes the induction test."""
        return self.scores.get("induction", 0.0) >= LEAST_INDUCTION


@dataclass(frozen=True)
class CorpusRoles:
    """All heads of a model over ``n_sentences`` sentences; ``n_skipped`` others did not fit.

    Attributes:
        digest: Hash of the whole list of sentences (``sentence_digest``).
        induction: Result of the induction test for a decoder-only model.
    """

    heads: tuple[CorpusRole, ...]
    n_sentences: int
    n_skipped: int
    digest: str
    induction: InductionTest | None = None

    def of(self, stack: str, kind: str) -> tuple[CorpusRole, ...]:
        """Return the heads of one kind of attention, layer by layer."""
        return tuple(head for head in self.heads if (head.stack, head.kind) == (stack, kind))

    def head(self, stack: str, kind: str, layer: int, head: int) -> CorpusRole:
        """Return one head.

        Raises:
            KeyError: If the model lacks the head.
        """
        return {found.place: found for found in self.heads}[Head(stack, kind, layer, head)]


def corpus_roles(
    checkpoint: Checkpoint,
    sentences: Sequence[str],
    *,
    batch_size: int = BATCH_SIZE,
    seed: int = 0,
    progress: Progress | None = None,
) -> CorpusRoles:
    """Return the roles of all heads over ``sentences``; see ``readings`` for what the model reads.

    Args:
        checkpoint: The model.
        sentences: Sentences to read.
        batch_size: Largest number of sentences in a batch.
        seed: Seed of the random sequences of the induction test.
        progress: Called as ``progress(done, total)`` after every batch, including those of the annotated sentences; an
            exception that it raises ends the work.

    Raises:
        InputError: If the model can read none of the sentences.
    """
    found: list[tuple[HeadRole, ...]] = []
    per_layer: LayerCounts = [{} for _ in attention_layers(checkpoint.config)]
    skipped, total = 0, len(sentences) + n_annotated(checkpoint)

    def report(done: int) -> None:
        if progress is not None:
            progress(done, total)

    for batch in readings(checkpoint, sentences, batch_size=batch_size):
        for reading in batch:
            add_reading(per_layer, reading)
            found += [roles for roles in [_roles_of(reading)] if roles]
            skipped += not reading.views
        report(len(found) + skipped)
    if not found:
        raise nothing_read_error(checkpoint, len(sentences))
    count_annotated(checkpoint, per_layer, batch_size=batch_size, progress=lambda done: report(len(sentences) + done))
    heads = tuple(summarise(of_one_head) for of_one_head in zip(*found, strict=True))
    induction, tested = None, {}
    if checkpoint.config.kind == "decoder-only":
        induction = induction_test(checkpoint, seed=seed)
        heads = tuple(_with_induction(head, induction) for head in heads)
        tested = {place: induction.measure(place) for place in induction.induction}
    measured = head_measures(checkpoint, per_layer, induction=tested)
    heads = tuple(replace(head, measured=one) for head, one in zip(heads, measured, strict=True))
    return CorpusRoles(heads, len(found), skipped, sentence_digest(sentences), induction)


def summarise(roles: Sequence[HeadRole]) -> CorpusRole:
    """Return one head's role over several sentences: the most frequent one, if it is frequent enough."""
    long_enough = [role for role in roles if not math.isnan(role.scores["broad"])]  # long enough to have a role
    count = Counter(role.role for role in long_enough)
    shares = {role: count[role] / len(long_enough) for role in ROLES if count[role]}
    often = max(shares, key=shares.__getitem__, default="none")  # the first if there are ties
    scores, counts = {}, {}
    for name in dict.fromkeys(name for role in roles for name in role.scores):
        values = [value for role in roles if not math.isnan(value := role.scores.get(name, math.nan))]
        scores[name] = math.fsum(values) / len(values) if values else math.nan
        counts[name] = len(values)
    first = roles[0]
    role = often if shares.get(often, 0.0) >= LEAST_CONSISTENT else "none"
    return CorpusRole(*first.place, role, shares, scores, counts, len(long_enough))


def _roles_of(reading: Reading) -> tuple[HeadRole, ...] | None:
    return tuple(role for view in reading.views for role in head_roles(view)) or None


def _with_induction(head: CorpusRole, test: InductionTest) -> CorpusRole:
    more = {"induction": test.induction[head.place], "previous_random": test.previous[head.place]}
    counts = dict.fromkeys(more, len(test.lengths))
    return replace(head, scores={**head.scores, **more}, counts={**head.counts, **counts})
