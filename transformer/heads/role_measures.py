"""The roles that a head may have, and the measures that decide on them.

One sentence has too few rows for the tests of the literature: there a head has the role of the kind of position that
gets most of its attention (``ROLES``). Over many sentences the tests say which role it has in general (``MEASURES``).
Both look at the same positions: "previous" and "next" are the offsets −1 and +1, "punctuation" is the delimiter.

Positions, offsets and shapes (``weight_patterns``) are counted in the sentences that are given; arcs and alignments in
the project's annotated ones (``annotated_words``), whatever is given; induction in random ones (``induction``); copying
is read off the weights (``head_circuits``).
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
    alignment_tallies,
    annotated_sentences,
    best_offset_share,
    best_rule_precision,
    joined,
    least_of_arcs,
    syntactic_tallies,
)
from transformer.heads.head_circuits import copying_scores, reads_words_out
from transformer.heads.weight_patterns import (
    LEAST_BROAD,
    LEAST_MONOTONE,
    Measure,
    Tallies,
    Tally,
    added,
    least_share,
    place_tallies,
    positional_measures,
    positional_tallies,
    profile,
    shape_tallies,
)
from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import Head, all_heads, attention_layers
from transformer.runs.readings import Reading, readings

# In the order in which equal scores are decided: a first token that is special is called a sink.
PLACES = ("previous", "next", "same", "sink", "punctuation", "repeated", "first", "diagonal")
ROLES = (*PLACES, "monotone", "broad", "none")
UNCLEAR = ("broad", "none")  # roles that say nothing about a head: it attends everywhere, or to nothing that has a name

ALIGNED = tuple(SHIFTS)
MEASURES = ("offset", "same", *DIRECTIONS, *ALIGNED, "rare", "repeated", "induction", "sink", "delimiter", "diagonal")
MEASURES += ("monotone", "window", "broad", "copying")
GENERAL = ("diagonal", "monotone", "window", "broad")  # named only where no sharper measure is reached, in this order
NO_ROLE = ("broad", "copying")  # a head that looks everywhere has none, and copying is what a head writes


MAX_SURPRISED = math.log(100)  # nats a token: a model that is more surprised does not know the language of the pairs
LEAST_COPYING = 0.5  # half of all that its eigenvalues move is raised, net
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
        one only where no other is; else the strongest of all that can mean a role. "" where nothing was measured."""
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
        return self.clear and self.strongest not in NO_ROLE

    @property
    def strength(self) -> float:
        """Of the strongest measure that can mean a role (1: the threshold, 0: chance); NaN where none was measured."""
        return max((one.strength for name, one in self.measures.items() if name not in NO_ROLE), default=math.nan)


def view_tallies(view: AttentionView) -> dict[str, Tally]:
    """What is counted in every sentence, of one layer."""
    positional = positional_tallies(view) if view.kind == "self" else {}
    return {**positional, **place_tallies(view), **shape_tallies(view)}


def add_reading(tallied: Tallied, reading: Reading, count: Callable[[AttentionView], Tallies] = view_tallies) -> None:
    """Count one more sentence: what ``count`` finds in each layer."""
    for layer, view in enumerate(reading.views):
        tallied[layer] = added(tallied[layer], count(view))


def count_annotated(
    checkpoint: Checkpoint, tallied: Tallied, *, batch_size: int, progress: Callable[[int], None] | None = None
) -> None:
    """Read the project's annotated sentences, whose arcs count in the stack that reads them, and the aligned pairs;
    ``progress(done)`` after every batch. The pairs count only for a model that knows the language of the answers: it
    must give their tokens a mean −ln p below ``MAX_SURPRISED``."""
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
        add_reading(tallied, reading, partial(syntactic_tallies, sentence=sentences[reading.index], causal=causal))
    pairs = _pairs_for(checkpoint)
    found: Tallied = [{} for _ in tallied]
    surprise: list[float] = []
    answers = [joined(pair.target) for pair in pairs]
    for reading in each([joined(pair.source) for pair in pairs], answers=answers) if pairs else ():
        add_reading(found, reading, partial(alignment_tallies, pair=pairs[reading.index]))
        surprise += reading.surprise
    if surprise and math.fsum(surprise) / len(surprise) < MAX_SURPRISED:
        tallied[:] = [added(one, other) for one, other in zip(tallied, found, strict=True)]


def n_annotated(checkpoint: Checkpoint) -> int:
    """How many sentences ``count_annotated`` reads."""
    return len(annotated_sentences()) + len(_pairs_for(checkpoint))


def head_measures(
    checkpoint: Checkpoint, tallied: Tallied, *, induction: Mapping[Head, Measure]
) -> tuple[HeadMeasures, ...]:
    """All heads in the order of ``all_heads``; "copying" is added here."""
    found, copying = [], copying_measures(checkpoint)
    elsewhere = {"induction": induction, "copying": copying}
    layers = list(attention_layers(checkpoint.config))
    tallies_of = dict(zip(layers, tallied, strict=True))
    least_of = {layer: _thresholds(tallies, causal=layer[0] == "decoder") for layer, tallies in tallies_of.items()}
    for head in all_heads(checkpoint.config):
        more = {name: measures[head] for name, measures in elsewhere.items() if head in measures}
        found.append(_of_head(tallies_of[head[:3]], head.head, least_of[head[:3]], more))
    return tuple(found)


def copying_measures(checkpoint: Checkpoint) -> dict[Head, Measure]:
    """By the weights alone: does what a head writes raise the very token that it looks at? Of the stacks from which one
    linear step leads to the words.

        copying = Σ λ / Σ |λ|      −1 … 1, over the eigenvalues λ of W_E W_V W_O W_U

    of Elhage et al. 2021 ("Copying"), as ``transformer.heads.head_circuits`` has it. 1: every token that the head
    looks at becomes more probable; −1: less; about 0: random weights, which is the chance level. What a head writes is
    no role: beside "induction" it says whether a head that finds the right place also says what stood there (Olsson et
    al. 2022 ask for both).
    """
    found, model = {}, checkpoint.model
    for stack, kind in dict.fromkeys((stack, kind) for stack, kind, _ in attention_layers(checkpoint.config)):
        for layer, scores in enumerate(copying_scores(model, stack, kind) if reads_words_out(model, stack) else ()):
            channels = model.get_submodule(f"{stack}.layers.{layer}.{kind}_attention").d_head
            for head, score in enumerate(scores):
                if not math.isnan(score):  # NaN: it writes nothing
                    found[Head(stack, kind, layer, head)] = Measure(score, 0.0, LEAST_COPYING, channels)
    return found


def _pairs_for(checkpoint: Checkpoint) -> tuple:
    return aligned_pairs() if checkpoint.config.has_encoder and checkpoint.config.has_decoder else ()


def _thresholds(tallies: Tallies, *, causal: bool) -> dict[str, float]:
    """From which score on a head of this layer has each of the roles that were counted at one place of a tally."""
    least = {"monotone": LEAST_MONOTONE, "broad": LEAST_BROAD}
    for name in ("sink", "delimiter", "repeated", "rare", "diagonal"):
        if name in tallies:
            least[name] = least_share(float(tallies[name].chances[0]))
    for name in DIRECTIONS:
        if name in tallies:
            best_offset = best_offset_share(annotated_sentences(), name, causal=causal)
            least[name] = least_of_arcs(tallies, name, best_offset=best_offset)
    for name in ALIGNED:
        least[name] = best_rule_precision(aligned_pairs()) + LEAST_ABOVE_RULE
    return {name: least[name] for name in least if name in tallies and tallies[name].rows[0]}


def _of_head(tallies: Tallies, head: int, least: Mapping[str, float], more: Mapping[str, Measure]) -> HeadMeasures:
    measures, where, distances = dict(more), {}, {}
    if "offset" in tallies:
        positional, where = positional_measures(tallies, head)
        measures |= positional
        distances = profile(tallies, head)
    measures |= {name: tallies[name].measure(head, least[name]) for name in least}
    rates = {name: 1 - float(tallies[f"{name}_aer"].shares[head, 0]) for name in ALIGNED if name in tallies}
    return HeadMeasures({name: measures[name] for name in MEASURES if name in measures}, where, distances, rates)
