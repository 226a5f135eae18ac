"""Roles that a head may have, and the measures that decide on them.

One sentence has too few rows for the tests of the literature: there, a head has the role of the kind of position with
most of its attention (``ROLES``). Over many sentences, the tests determine its role in general (``MEASURES``). Both use
the same positions: "previous" and "next" are the offsets −1 and +1, "punctuation" is the delimiter.

Positions, offsets and shapes (``weight_patterns``) are counted in the given sentences; arcs and alignments in this
project's annotated ones (``annotated_words``), whatever is given; induction in random ones (``induction``); copying is
computed from the weights (``head_circuits``).
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from transformer.files.checkpoints import Checkpoint
from transformer.heads.annotated_words import (
    DIRECTIONS,
    LEAST_ABOVE_RULE,
    SHIFTS,
    aligned_pairs,
    alignment_counts,
    annotated_sentences,
    best_offset_share,
    best_rule_precision,
    join_words,
    least_of_arcs,
    syntactic_counts,
)
from transformer.heads.head_circuits import copying_scores, reads_words_out
from transformer.heads.weight_patterns import (
    LEAST_BROAD,
    LEAST_MONOTONE,
    Count,
    Counts,
    Measure,
    add_counts,
    least_share,
    place_counts,
    positional_counts,
    positional_measures,
    profile,
    shape_counts,
)
from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import Head, all_heads, attention_layers
from transformer.runs.readings import Reading, readings

# In the order in which ties are decided: a first token that is special is called a sink.
PLACES = ("previous", "next", "same", "sink", "punctuation", "repeated", "first", "diagonal")
ROLES = (*PLACES, "monotone", "broad", "none")
# Roles without content: the head attends everywhere, or to no kind of position that has a name.
UNCLEAR = ("broad", "none")

ALIGNED = tuple(SHIFTS)
MEASURES = ("offset", "same", *DIRECTIONS, *ALIGNED, "rare", "repeated", "induction", "sink", "delimiter", "diagonal")
MEASURES += ("monotone", "window", "broad", "copying")
GENERAL = ("diagonal", "monotone", "window", "broad")  # used only if no sharper measure is reached, in this order
NO_ROLE = ("broad", "copying")  # attending everywhere is no role, and copying is about what a head writes


MAX_SURPRISED = math.log(100)  # nats per token; a model with a higher mean does not know the language of the pairs
LEAST_COPYING = 0.5  # of Σλ ÷ Σ|λ|, which lies between −1 and 1
LayerCounts = list[dict[str, Count]]  # one per attention layer, in the order of ``attention_layers``


@dataclass(frozen=True)
class HeadMeasures:
    """Measures of one head.

    Attributes:
        measures: Measures by name.
        where: The offset of "offset" and the first one of "window".
        profile: Mean weight at every distance (self-attention).
        error_rates: AER by the names of ``ALIGNED``.
    """

    measures: Mapping[str, Measure] = field(default_factory=dict)
    where: Mapping[str, int] = field(default_factory=dict)
    profile: Mapping[int, float] = field(default_factory=dict)
    error_rates: Mapping[str, float] = field(default_factory=dict)

    @property
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
        """Whether the strongest measure is reached."""
        return bool(self.strongest) and self.measures[self.strongest].reached

    @property
    def has_role(self) -> bool:
        """Whether the head has a role in general."""
        return self.clear and self.strongest not in NO_ROLE

    @property
    def strength(self) -> float:
        """Strength of the strongest measure of a role (1: threshold, 0: chance); NaN if none exists."""
        return max((one.strength for name, one in self.measures.items() if name not in NO_ROLE), default=math.nan)


def view_counts(view: AttentionView) -> dict[str, Count]:
    """Return what is counted in every sentence, for one layer."""
    positional = positional_counts(view) if view.kind == "self" else {}
    return {**positional, **place_counts(view), **shape_counts(view)}


def add_reading(
    per_layer: LayerCounts, reading: Reading, count: Callable[[AttentionView], Counts] = view_counts
) -> None:
    """Add one more sentence: what ``count`` finds in each layer."""
    for layer, view in enumerate(reading.views):
        per_layer[layer] = add_counts(per_layer[layer], count(view))


def count_annotated(
    checkpoint: Checkpoint, per_layer: LayerCounts, *, batch_size: int, progress: Callable[[int], None] | None = None
) -> None:
    """Read the annotated sentences and the aligned pairs, and add their counts.

    Arcs count in the stack that reads them. Pairs count only if the model knows the language of the translations: it
    must give their tokens a mean −log p below ``MAX_SURPRISED``. ``progress(done)`` is called after every batch.
    """
    done = 0

    def each(texts: list[str], **options: object) -> Iterator[Reading]:
        nonlocal done
        for batch in readings(checkpoint, texts, batch_size=batch_size, **options):
            yield from batch
            done += len(batch)
            if progress is not None:
                progress(done)

    sentences, causal = annotated_sentences(), not checkpoint.config.has_encoder
    for reading in each([sentence.text for sentence in sentences], source_only=True):
        add_reading(per_layer, reading, partial(syntactic_counts, sentence=sentences[reading.index], causal=causal))
    pairs = _pairs_for(checkpoint)
    found: LayerCounts = [{} for _ in per_layer]
    surprise: list[float] = []
    answers = [join_words(pair.target) for pair in pairs]
    for reading in each([join_words(pair.source) for pair in pairs], answers=answers) if pairs else ():
        add_reading(found, reading, partial(alignment_counts, pair=pairs[reading.index]))
        surprise += reading.surprise
    if surprise and math.fsum(surprise) / len(surprise) < MAX_SURPRISED:
        per_layer[:] = [add_counts(one, other) for one, other in zip(per_layer, found, strict=True)]


def n_annotated(checkpoint: Checkpoint) -> int:
    """Return how many sentences ``count_annotated`` reads."""
    return len(annotated_sentences()) + len(_pairs_for(checkpoint))


def head_measures(
    checkpoint: Checkpoint, per_layer: LayerCounts, *, induction: Mapping[Head, Measure]
) -> tuple[HeadMeasures, ...]:
    """Return the measures of all heads in the order of ``all_heads``, including "copying"."""
    found, copying = [], copying_measures(checkpoint)
    elsewhere = {"induction": induction, "copying": copying}
    layers = list(attention_layers(checkpoint.config))
    counts_of = dict(zip(layers, per_layer, strict=True))
    least_of = {layer: _thresholds(counts, causal=layer[0] == "decoder") for layer, counts in counts_of.items()}
    for head in all_heads(checkpoint.config):
        more = {name: measures[head] for name, measures in elsewhere.items() if head in measures}
        found.append(_of_head(counts_of[head[:3]], head.head, least_of[head[:3]], more))
    return tuple(found)


def copying_measures(checkpoint: Checkpoint) -> dict[Head, Measure]:
    """Measure from the weights alone whether a head's output raises the logit of the token it attends to.

    Only stacks whose output is projected linearly onto the vocabulary are included.

        copying = Σ λ / Σ |λ|      −1 … 1, over the eigenvalues λ of W_E W_V W_O W_U

    of Elhage et al. 2021 ("Copying"); see ``transformer.heads.head_circuits``. Its sign is that of the mean, over all
    tokens, of what attending to a token adds to that token's own logit; random weights give about 0, the chance level.
    What a head writes is not a role: together with "induction" it shows whether a head that finds the right position
    also predicts the token there (Olsson et al. 2022 require both).
    """
    found, model = {}, checkpoint.model
    for stack, kind in dict.fromkeys((stack, kind) for stack, kind, _ in attention_layers(checkpoint.config)):
        for layer, scores in enumerate(copying_scores(model, stack, kind) if reads_words_out(model, stack) else ()):
            channels = model.get_submodule(f"{stack}.layers.{layer}.{kind}_attention").d_head
            for head, score in enumerate(scores):
                if not math.isnan(score):  # NaN if the head writes nothing
                    found[Head(stack, kind, layer, head)] = Measure(score, 0.0, LEAST_COPYING, channels)
    return found


def _pairs_for(checkpoint: Checkpoint) -> tuple:
    return aligned_pairs() if checkpoint.config.has_encoder and checkpoint.config.has_decoder else ()


def _thresholds(counts: Counts, *, causal: bool) -> dict[str, float]:
    """Return the least score at which a head of this layer has each of the counted roles."""
    least = {"monotone": LEAST_MONOTONE, "broad": LEAST_BROAD}
    for name in ("sink", "delimiter", "repeated", "rare", "diagonal"):
        if name in counts:
            least[name] = least_share(float(counts[name].chances[0]))
    for name in DIRECTIONS:
        if name in counts:
            best_offset = best_offset_share(annotated_sentences(), name, causal=causal)
            least[name] = least_of_arcs(counts, name, best_offset=best_offset)
    for name in ALIGNED:
        least[name] = best_rule_precision(aligned_pairs()) + LEAST_ABOVE_RULE
    return {name: least[name] for name in least if name in counts and counts[name].rows[0]}


def _of_head(counts: Counts, head: int, least: Mapping[str, float], more: Mapping[str, Measure]) -> HeadMeasures:
    measures, where, distances = dict(more), {}, {}
    if "offset" in counts:
        positional, where = positional_measures(counts, head)
        measures |= positional
        distances = profile(counts, head)
    measures |= {name: counts[name].measure(head, least[name]) for name in least}
    rates = {name: 1 - float(counts[f"{name}_aer"].shares[head, 0]) for name in ALIGNED if name in counts}
    return HeadMeasures({name: measures[name] for name in MEASURES if name in measures}, where, distances, rates)
