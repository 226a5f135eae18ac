"""Role of every head in one sentence, and over many sentences.

In one sentence, the measures are where the head attends to and how sharply, and which of a few known roles that fits.
These roles were found in trained models: the positions and shapes of ``weight_patterns``, and induction, which needs a
text with repetitions. A role describes the head in this sentence only, and does not say whether the model needs the
head.

Over many sentences: the roles sentence by sentence, their means, and the tests of the literature, which one sentence
with its few rows cannot decide. Voita et al. 2019 ("Analyzing Multi-Head Self-Attention", §4 and §5) name a head only
if it plays one role in most sentences, and is confident. Both use the same positions: "previous" and "next" are the
offsets −1 and +1, "punctuation" is the delimiter.

Positions, offsets and shapes (``weight_patterns``) are counted in the given sentences; arcs and alignments in this
project's annotated ones (``annotated_words``), whatever is given; induction in random ones (``induction``); copying is
computed from the weights (``head_circuits``).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from transformer.errors import InputError
from transformer.files.checkpoints import Checkpoint
from transformer.files.once import once
from transformer.heads.annotated_words import (
    DIRECTIONS,
    LEAST_ABOVE_RULE,
    SHIFTS,
    AlignedPair,
    aligned_pairs,
    alignment_counts,
    annotated_sentences,
    arc_threshold,
    best_offset_share,
    best_rule_precision,
    join_words,
    syntactic_counts,
)
from transformer.heads.head_circuits import copying_scores, reads_words_out
from transformer.heads.induction import LEAST_INDUCTION, InductionTest, induction_counts
from transformer.heads.weight_patterns import (
    LEAST_BROAD,
    LEAST_MONOTONE,
    LEAST_ROWS,
    NEEDED,
    Count,
    Counts,
    Measure,
    add_counts,
    count,
    counted_rows,
    least_share,
    patterns_of,
    place_counts,
    positional_counts,
    positional_measures,
    shape_counts,
    shape_scores,
)
from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import Head, LocatedAtHead, attention_layers
from transformer.runs.readings import BATCH_SIZE, Progress, readings
from transformer.runs.traces import Trace
from transformer.text.sentence_files import sentence_digest

# In the order in which ties are decided: a first token that is special is called a sink.
PLACES = ("previous", "next", "same", "sink", "punctuation", "repeated", "first", "diagonal")
ROLES = (*PLACES, "monotone", "broad", "none")

ALIGNED = tuple(SHIFTS)
MEASURES = ("offset", "same", *DIRECTIONS, *ALIGNED, "rare", "repeated", "induction", "sink", "delimiter", "diagonal")
MEASURES += ("monotone", "window", "broad", "copying")
GENERAL = ("diagonal", "monotone", "window", "broad")  # used only if no sharper measure is reached, in this order
IN_RANDOM = ("induction", "previous_random")  # scores in random sequences (``transformer.heads.induction``)
NO_ROLE = ("broad", "copying")  # attending everywhere is no role, and copying is about what a head writes

AT_REST = ("first", "sink")  # where a head puts its weight when it has nothing else to attend to
RESTING = (*AT_REST, "punctuation", "delimiter")  # roles of a head that attends to a fixed position
LEAST_AWAKE = 0.1  # share of a row; a head that sends less to what followed does not count as an induction head
LEAST_CONSISTENT = 0.5  # a head has a role in general if it has that role in at least half of the sentences
LEAST_LEANING = 0.1  # a less frequent role is not mentioned
MAX_SURPRISED = math.log(100)  # nats per token; a model with a higher mean does not know the language of the pairs
LEAST_COPYING = 0.5  # of Σλ ÷ Σ|λ|, which lies between −1 and 1
Layer = tuple[str, str, int]  # stack, kind, layer
LayerCounts = Mapping[Layer, dict[str, Count]]


@dataclass(frozen=True)
class HeadRole(LocatedAtHead):
    """Role of one head in one sentence, or over ``n_sentences``.

    Shares are from 0 to 1; "broad" is the entropy as a share of the largest possible, from 0 to 1; "monotone" is from
    −1 to 1; "entropy" is in bits, "distance" in tokens; "confidence" and "sinks" are shares.

    Attributes:
        role: The role in one sentence; over many sentences the most frequent role if its share is at least
            ``LEAST_CONSISTENT``, else "none".
        scores: All measures of positions and shapes by name, NaN if undefined. Over many sentences, each is the mean
            over the sentences in which it is defined, and a decoder-only model also has "induction" and
            "previous_random" (``transformer.heads.induction``).
        shares: For every role the share of the ``n_sentences`` in which the head has it; sentences too short for roles
            do not count.
        n_sentences: ``None`` for the role in one sentence.
        measures: Tests of the literature by name, counted over the rows of all sentences.
    """

    role: str
    scores: Mapping[str, float]
    shares: Mapping[str, float] = field(default_factory=dict)
    n_sentences: int | None = None
    measures: Mapping[str, Measure] = field(default_factory=dict)

    @property
    def score(self) -> float:
        """Score of the role itself; NaN for "none"."""
        return self.scores.get(self.role, math.nan)

    @property
    def nearest(self) -> str:
        """Kind of position with the largest share, however small; "" if none has any."""
        shares = {place: share for place in PLACES if (share := self.scores.get(place, math.nan)) > 0}
        return max(shares, key=shares.__getitem__, default="")

    @property
    def consistency(self) -> float:
        """Share of the sentences in which the head has its most frequent role; NaN if all were too short."""
        return max(self.shares.values(), default=math.nan)

    @property
    def leaning(self) -> str:
        """Most frequent role of a head without a clear one, if its share exceeds ``LEAST_LEANING``; else ""."""
        clear = {role: share for role, share in self.shares.items() if role != "none" and share >= LEAST_LEANING}
        return max(clear, key=clear.__getitem__, default="") if self.role == "none" else ""

    @once
    def strongest(self) -> str:
        """Name of the measure that best describes this head; "" if nothing was measured.

        It is the strongest of the measures that reach their thresholds, and a general one only if no other does. If
        none does, it is the strongest of all measures that can mean a role.
        """
        reached = [name for name, measure in self.measures.items() if measure.reached and name != "copying"]
        sharp = [name for name in reached if name not in GENERAL]
        if not sharp and reached:
            return min(reached, key=GENERAL.index)
        choice = sharp or [name for name in self.measures if name not in NO_ROLE]
        return max(choice, key=lambda name: self.measures[name].strength, default="")

    @property
    def clear(self) -> bool:
        """Whether the strongest measure reaches its threshold."""
        return bool(self.strongest) and self.measures[self.strongest].reached

    @property
    def has_role(self) -> bool:
        """Whether the head has a role in general."""
        return self.clear and self.strongest not in NO_ROLE

    @property
    def strength(self) -> float:
        """Strength of the strongest measure of a role (1: threshold, 0: chance); NaN if none exists."""
        return max((one.strength for name, one in self.measures.items() if name not in NO_ROLE), default=math.nan)


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
    """Return the role of every head of one layer by ``choose_role``; fewer than three rows give no share."""
    rows, nothing = counted_rows(view), np.full(view.n_heads, np.nan)
    counts = {
        name: count(view, cells, rows, needed=name in NEEDED)
        for name, cells in patterns_of(view).items()
        if name in PLACES  # only causal attention can use "after_repeated": ``sentence_roles``
    }
    chances = {name: float(found.chances[0]) for name, found in counts.items()}
    measured = {
        name: found.shares[:, 0] if found.rows[0] >= LEAST_ROWS and found.chance[0] else nothing
        for name, found in counts.items()
    }
    measured |= shape_scores(view)
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


@dataclass(frozen=True)
class CorpusRoles:
    """All heads of a model over ``n_sentences`` sentences; ``n_skipped`` others did not fit.

    Attributes:
        digest: Hash of the whole list of sentences (``sentence_digest``).
        induction: What the induction test of a decoder-only model read.
    """

    heads: tuple[HeadRole, ...]
    n_sentences: int
    n_skipped: int
    digest: str
    induction: InductionTest | None = None

    def of(self, stack: str, kind: str) -> tuple[HeadRole, ...]:
        """Return the heads of one kind of attention, layer by layer."""
        return tuple(head for head in self.heads if (head.stack, head.kind) == (stack, kind))

    def head(self, stack: str, kind: str, layer: int, head: int) -> HeadRole:
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
    progress: Progress | None = None,
) -> CorpusRoles:
    """Return the roles of all heads over ``sentences``; see ``readings`` for what the model reads.

    Args:
        checkpoint: The model.
        sentences: Sentences to read.
        batch_size: Largest number of sentences in a batch.
        progress: Called as ``progress(done, total)`` after every batch, including those of the annotated sentences; an
            exception that it raises ends the work.

    Raises:
        InputError: If the model can read none of the sentences.
    """
    found: list[tuple[HeadRole, ...]] = []
    counts: LayerCounts = defaultdict(dict)
    total = len(sentences) + n_annotated(checkpoint)

    def report_after(start: int) -> Progress | None:
        return None if progress is None else lambda done, _: progress(start + done, total)

    for reading in readings(checkpoint, sentences, batch_size=batch_size, progress=report_after(0)):
        for view in reading.views:
            positional = positional_counts(view) if view.kind == "self" else {}
            add_counts(counts[_layer(view)], {**positional, **place_counts(view), **shape_counts(view)})
        if reading.views:
            found.append(tuple(role for view in reading.views for role in head_roles(view)))
    for place, of_layer in annotated_counts(checkpoint, batch_size, lambda done: report_after(len(sentences) + done)):
        add_counts(counts[place], of_layer)
    test = None
    if checkpoint.config.kind == "decoder-only":
        test, in_random = induction_counts(checkpoint)
        for layer, of_layer in enumerate(in_random):
            add_counts(counts["decoder", "self", layer], of_layer)
    heads = with_measures(checkpoint, map(summarise, zip(*found, strict=True)), counts)
    return CorpusRoles(heads, len(found), len(sentences) - len(found), sentence_digest(sentences), test)


def summarise(roles: Sequence[HeadRole]) -> HeadRole:
    """Return one head's role over several sentences: its most frequent role if that is frequent enough."""
    long_enough = [role for role in roles if not math.isnan(role.scores["broad"])]  # long enough to have a role
    count = Counter(role.role for role in long_enough)
    shares = {role: count[role] / len(long_enough) for role in ROLES if count[role]}
    often = max(shares, key=shares.__getitem__, default="none")  # the first if there are ties
    scores = {}
    for name in dict.fromkeys(name for role in roles for name in role.scores):
        values = [value for role in roles if not math.isnan(value := role.scores.get(name, math.nan))]
        scores[name] = math.fsum(values) / len(values) if values else math.nan
    role = often if shares.get(often, 0.0) >= LEAST_CONSISTENT else "none"
    return HeadRole(*roles[0].place, role, scores, shares, len(long_enough))


def _layer(view: AttentionView) -> Layer:
    return view.stack, view.kind, view.layer


def annotated_counts(
    checkpoint: Checkpoint, batch_size: int, report_after: Callable[[int], Progress | None]
) -> Iterator[tuple[Layer, Counts]]:
    """Yield the counts of each layer in the annotated sentences and the aligned pairs.

    Arcs count in the stack that reads them. Pairs count only if the model knows the language of the translations: it
    must give their tokens a mean −log p below ``MAX_SURPRISED``. ``report_after(n)`` returns the progress after ``n``
    of these sentences. A model that can read none of them, because it has too few positions, has no such counts.
    """
    sentences, causal = annotated_sentences(), not checkpoint.config.has_encoder
    texts = [sentence.text for sentence in sentences]
    with suppress(InputError):
        for reading in readings(checkpoint, texts, source_only=True, batch_size=batch_size, progress=report_after(0)):
            for view in reading.views:
                yield _layer(view), syntactic_counts(view, sentences[reading.index], causal=causal)
    pairs = _pairs_for(checkpoint)
    texts, answers = [join_words(pair.source) for pair in pairs], [join_words(pair.target) for pair in pairs]
    found: list[tuple[Layer, Counts]] = []
    surprise: list[float] = []
    with suppress(InputError):
        for reading in readings(
            checkpoint, texts, answers=answers, batch_size=batch_size, progress=report_after(len(sentences))
        ):
            found += [(_layer(view), alignment_counts(view, pairs[reading.index])) for view in reading.views]
            surprise += reading.surprise
    if surprise and math.fsum(surprise) / len(surprise) < MAX_SURPRISED:
        yield from found


def n_annotated(checkpoint: Checkpoint) -> int:
    """Return how many sentences ``annotated_counts`` reads."""
    return len(annotated_sentences()) + len(_pairs_for(checkpoint))


def with_measures(checkpoint: Checkpoint, heads: Iterable[HeadRole], counts: LayerCounts) -> tuple[HeadRole, ...]:
    """Return ``heads``, all of the model, with the tests of the literature."""
    copying, found = copying_measures(checkpoint), []
    least_of = {layer: _thresholds(own, causal=layer[0] == "decoder") for layer, own in counts.items()}
    for head in heads:
        own, least = counts[head.place[:3]], least_of[head.place[:3]]
        measures = {name: own[name].measure(head.head, least[name]) for name in least}
        if "offset" in own:
            measures |= positional_measures(own, head.head)
        if head.place in copying:
            measures["copying"] = copying[head.place]
        random = {name: float(own[name].shares[head.head, 0]) for name in IN_RANDOM if name in own}
        ordered = {name: measures[name] for name in MEASURES if name in measures}
        found.append(replace(head, scores={**head.scores, **random}, measures=ordered))
    return tuple(found)


def copying_measures(checkpoint: Checkpoint) -> dict[Head, Measure]:
    """Measure from the weights alone whether a head's output raises the logit of the token it attends to.

    Only stacks whose output is projected linearly onto the vocabulary are included.

        copying = Σ λ / Σ |λ|      −1 … 1, over the eigenvalues λ of W_E W_V W_O W_U

    of Elhage et al. 2021 ("Copying"); see ``head_circuits``. Its sign is that of the mean, over all tokens, of what
    attending to a token adds to that token's own logit; random weights give about 0, the chance level. Copying is not a
    role by itself. Together with "induction" it shows whether a head that finds the right position also predicts the
    token there (Olsson et al. 2022 require both).
    """
    found, model = {}, checkpoint.model
    for stack, kind in dict.fromkeys((stack, kind) for stack, kind, _ in attention_layers(checkpoint.config)):
        for layer, scores in enumerate(copying_scores(model, stack, kind) if reads_words_out(model, stack) else ()):
            channels = model.get_submodule(f"{stack}.layers.{layer}.{kind}_attention").d_head
            for head, score in enumerate(scores):
                if not math.isnan(score):  # NaN if the head writes nothing
                    found[Head(stack, kind, layer, head)] = Measure(score, 0.0, LEAST_COPYING, channels)
    return found


def _pairs_for(checkpoint: Checkpoint) -> Sequence[AlignedPair]:
    return aligned_pairs() if checkpoint.config.has_encoder and checkpoint.config.has_decoder else ()


def _thresholds(counts: Counts, *, causal: bool) -> dict[str, float]:
    """Return the least score at which a head of this layer has each of the counted roles."""
    least = {"monotone": LEAST_MONOTONE, "broad": LEAST_BROAD, "induction": LEAST_INDUCTION}
    for name in ("sink", "delimiter", "repeated", "rare", "diagonal"):
        if name in counts:
            least[name] = least_share(float(counts[name].chances[0]))
    for name in DIRECTIONS:
        if name in counts:
            best_offset = best_offset_share(annotated_sentences(), name, causal=causal)
            least[name] = arc_threshold(counts, name, best_offset=best_offset)
    for name in ALIGNED:
        least[name] = best_rule_precision(aligned_pairs()) + LEAST_ABOVE_RULE
    return {name: least[name] for name in least if name in counts and counts[name].rows[0]}
