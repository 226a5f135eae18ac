"""All measures of all heads of a model: what is counted in which sentences, and which job a head has.

Positions, places and spread are counted in the sentences that are given; arcs and alignments in the project's annotated
ones (``annotations``), whatever is given; induction in random ones (``transformer.roles.induction``); copying
is read off the weights.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from transformer.files.checkpoints import Checkpoint
from transformer.roles.alignment import alignment_measure, alignment_tallies, best_rule_precision
from transformer.roles.annotations import AlignedPair, AnnotatedSentence, aligned_pairs, annotated_sentences, joined
from transformer.roles.copying import copying_measures
from transformer.roles.places import place_measure, place_tallies
from transformer.roles.positional import positional_measures, positional_tallies, profile
from transformer.roles.spread import spread_measure, spread_tallies
from transformer.roles.syntactic import DIRECTIONS, best_offset_share, syntactic_measure, syntactic_tallies
from transformer.roles.tally import Measure, Tally, added
from transformer.runs.attention_view import AttentionView
from transformer.runs.readings import Reading, attention_layers, readings

PLACES = ("sink", "delimiter", "repeated", "rare", "diagonal")
ALIGNED = ("aligned_next", "aligned_read")
MEASURES = ("offset", "same", *DIRECTIONS, *ALIGNED, "rare", "repeated", "induction", "sink", "delimiter", "diagonal")
MEASURES += ("monotone", "window", "broad", "copying")
GENERAL = ("diagonal", "monotone", "window", "broad")  # named only where no sharper measure is reached, in this order
NO_JOB = ("broad", "copying")  # a head that looks everywhere has none, and copying is what a head writes
MOST_SURPRISED = math.log(100)  # nats a token: a model that is more surprised does not know the language of the pairs
Tallied = list[dict[str, Tally]]  # of every attention layer, in the order of ``attention_layers``


@dataclass(frozen=True)
class HeadMeasures:
    """One head: ``measures`` by name, ``where``: the offset of "offset" and the first one of "window"; ``profile``: the
    mean weight at every distance (self-attention); ``error_rates``: AER by the names of ``ALIGNED``."""

    measures: Mapping[str, Measure] = field(default_factory=dict)
    where: Mapping[str, int] = field(default_factory=dict)
    profile: Mapping[int, float] = field(default_factory=dict)
    error_rates: Mapping[str, float] = field(default_factory=dict)

    @property
    def strongest(self) -> str:
        """The name of the measure that says most about this head: of those that are reached the strongest, a general
        one
        only where no other is; else the strongest of all that can mean a job. "" where nothing was measured."""
        reached = [name for name, measure in self.measures.items() if measure.reached and name != "copying"]
        sharp = [name for name in reached if name not in GENERAL]
        if not sharp and reached:
            return min(reached, key=GENERAL.index)
        choice = sharp or [name for name in self.measures if name not in NO_JOB]
        return max(choice, key=lambda name: self.measures[name].strength, default="")

    @property
    def clear(self) -> bool:
        """Whether the strongest measure is reached."""
        return bool(self.strongest) and self.measures[self.strongest].reached

    @property
    def has_job(self) -> bool:
        return self.clear and self.strongest not in NO_JOB

    @property
    def strength(self) -> float:
        """Of the strongest measure that can mean a job (1: the threshold, 0: chance); NaN where none was measured."""
        return max((one.strength for name, one in self.measures.items() if name not in NO_JOB), default=math.nan)


def view_tallies(view: AttentionView) -> dict[str, Tally]:
    """What is counted in every sentence, of one layer."""
    positional = positional_tallies(view) if view.kind == "self" else {}
    return {**positional, **place_tallies(view), **spread_tallies(view)}


def add_reading(tallied: Tallied, reading: Reading) -> None:
    """Count one more sentence."""
    for layer, view in enumerate(reading.views):
        tallied[layer] = added(tallied[layer], view_tallies(view))


def add_arcs(tallied: Tallied, reading: Reading, sentence: AnnotatedSentence) -> None:
    """Count the arcs of one annotated sentence: in the stack that reads it."""
    for layer, view in enumerate(reading.views):
        if view.kind == "self" and view.stack == reading.views[0].stack:
            tallied[layer] = added(tallied[layer], syntactic_tallies(view, sentence, causal=view.stack == "decoder"))


def add_pair(tallied: Tallied, reading: Reading, pair: AlignedPair) -> None:
    """Count the words of one aligned pair."""
    for layer, view in enumerate(reading.views):
        if view.kind == "cross":
            tallied[layer] = added(tallied[layer], alignment_tallies(view, pair))


def count_annotated(
    checkpoint: Checkpoint, tallied: Tallied, *, batch_size: int, progress: Callable[[int], None] | None = None
) -> None:
    """Read the project's annotated sentences and pairs; ``progress(done)`` after every batch. The pairs count only for
    a
    model that knows the language of the answers: it must give their tokens a mean −ln p below ``MOST_SURPRISED``."""
    sentences, pairs = annotated_sentences(), aligned_pairs()
    done = 0
    for batch in readings(checkpoint, [one.text for one in sentences], source_only=True, batch_size=batch_size):
        for reading in batch:
            add_arcs(tallied, reading, sentences[reading.index])
        done += len(batch)
        if progress is not None:
            progress(done)
    if not (checkpoint.config.has_encoder and checkpoint.config.has_decoder):
        return
    sources, answers = [joined(pair.source) for pair in pairs], [joined(pair.target) for pair in pairs]
    found: Tallied = [{} for _ in tallied]
    surprise: list[float] = []
    for batch in readings(checkpoint, sources, answers=answers, batch_size=batch_size):
        for reading in batch:
            add_pair(found, reading, pairs[reading.index])
            surprise += reading.surprise
        done += len(batch)
        if progress is not None:
            progress(done)
    if surprise and math.fsum(surprise) / len(surprise) < MOST_SURPRISED:
        tallied[:] = [added(one, other) for one, other in zip(tallied, found, strict=True)]


def n_annotated(checkpoint: Checkpoint) -> int:
    """How many sentences ``count_annotated`` reads."""
    pairs = len(aligned_pairs()) if checkpoint.config.has_encoder and checkpoint.config.has_decoder else 0
    return len(annotated_sentences()) + pairs


def head_measures(
    checkpoint: Checkpoint, tallied: Tallied, *, more: Mapping[tuple[str, str, int, int], Mapping[str, Measure]]
) -> tuple[HeadMeasures, ...]:
    """All heads in the order of ``attention_layers``; ``more``: measures from elsewhere, by (stack, kind, layer,
    head). Copying is added here."""
    found, copying = [], copying_measures(checkpoint)
    rule = best_rule_precision(aligned_pairs())
    for (stack, kind, layer), tallies in zip(attention_layers(checkpoint), tallied, strict=True):
        offsets = _baselines(causal=stack == "decoder")
        for head in range(checkpoint.config.heads_in(stack)):
            place = (stack, kind, layer, head)
            elsewhere = {**more.get(place, {}), **({"copying": copying[place]} if place in copying else {})}
            found.append(_of_head(tallies, head, offsets, rule, elsewhere))
    return tuple(found)


def _baselines(*, causal: bool) -> dict[str, float]:
    return {name: best_offset_share(annotated_sentences(), name, causal=causal) for name in DIRECTIONS}


def _of_head(
    tallies: Mapping[str, Tally],
    head: int,
    offsets: Mapping[str, float],
    rule: float,
    more: Mapping[str, Measure],
) -> HeadMeasures:
    measures, where, distances = dict(more), {}, {}
    if "offset" in tallies:
        positional, where = positional_measures(tallies, head)
        measures |= positional
        distances = profile(tallies, head)
    for name in PLACES:
        if name in tallies and (measure := place_measure(tallies[name], head)):
            measures[name] = measure
    for name in ("monotone", "broad"):
        if name in tallies and (measure := spread_measure(name, tallies[name], head)):
            measures[name] = measure
    for name in DIRECTIONS:
        if name in tallies:
            longest = float(tallies[f"{name}_longest"].shares[0, 0])
            measures[name] = syntactic_measure(tallies[name], head, baseline=max(offsets[name], longest))
    for name in ALIGNED:
        if name in tallies:
            measures[name] = alignment_measure(tallies[name], head, baseline=rule)
    rates = {name: 1 - float(tallies[f"{name}_aer"].shares[head, 0]) for name in ALIGNED if name in tallies}
    return HeadMeasures({name: measures[name] for name in MEASURES if name in measures}, where, distances, rates)
