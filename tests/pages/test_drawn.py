"""What a page draws is what the trace holds: a row for each view, with the arrays of its figures.

The numbers that reach the browser are read as ``tests/golden/readers.py`` reads them, under "figure / array"; each is
compared with NumPy on the recorded activations, or with the one function of the library that is tested by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import transformer
from tests.golden.readers import values_of_page
from tests.golden.store import difference, value_of
from transformer.attention_maps.attention_path import AttentionPath, attention_path, norm_weighted, output_sum
from transformer.attention_maps.rollout import attention_rollout
from transformer.attention_maps.whole_words import merge_into_words
from transformer.attribution.direct_logit_attribution import attribute, strongest_sources
from transformer.heads.head_circuits import query_key_circuit
from transformer.interventions.experiment import experiment
from transformer.interventions.head_importance import head_importance
from transformer.interventions.reordering import attention_change, new_order, reordered_trace
from transformer.layers.embedding_lookup import embedding_table
from transformer.predictions.comparison import head_differences
from transformer.runs.edit_specs import edits_from
from transformer.runs.mask_choices import MaskChoices
from transformer.runs.traces import Trace

SENTENCE = "The old man told us a story, and the sea was cold."
OTHER = SENTENCE.replace("story", "lie")
TRANSLATOR, GPT, BERT, SENTIMENT = "tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"
ENCODER = {"stack": "encoder", "kind": "self", "layer": "1", "head": "1", "token": "3"}
DECODER = {**ENCODER, "stack": "decoder"}
CROSS = {**DECODER, "kind": "cross"}
CELL = {"attention_key": "1", "cell_whole_row": "true"}
AUTHOR, SWAP, HEATMAP = {"lens_view": "author"}, {"swap first": "1", "swap second": "3"}, {"positions view": "heatmap"}
ANY = object()  # whatever an array holds
PLACES = {TRANSLATOR: CROSS, GPT: DECODER, BERT: ENCODER, SENTIMENT: ENCODER}


def show(drawing: str) -> dict[str, str]:
    return {"attention_show": drawing}


@dataclass(frozen=True)
class At:
    """A trace, and the place in it that a page looks at."""

    trace: Trace
    stack: str
    kind: str
    layer: int
    head: int
    token: int

    @property
    def view(self) -> transformer.AttentionView:
        return self.trace.attention(self.stack, self.layer, self.kind)

    @property
    def ids(self) -> tuple[int, ...]:
        return self.trace.tokens(self.stack).ids

    def all_weights(self) -> np.ndarray:
        """Return the weights of all heads of this kind, [layer · head, query, key]."""
        layers = range(self.trace.n_layers(self.stack))
        return np.concatenate([self.trace.attention(self.stack, layer, self.kind).weights for layer in layers])

    def of_layer(self, name: str, layer: int | None = None) -> np.ndarray:
        """Return an activation of the layer, such as "feed_forward.hidden"."""
        return self.trace.values(f"{self.stack}.layers.{self.layer if layer is None else layer}.{name}")

    def stream(self) -> list[np.ndarray]:
        """Return the sum of the embeddings and the stream after each sublayer, each [token, d]."""
        after = ["after_self_attention", *["after_cross_attention"] * (self.kind == "cross"), "out"]
        layers = range(self.trace.n_layers(self.stack))
        return [
            self.of_layer("residual.in", 0),
            *(self.of_layer(f"residual.{name}", k) for k in layers for name in after),
        ]


@dataclass(frozen=True)
class Drawn:
    """A view, and what its figures hold.

    Attributes:
        page: The page.
        arrays: What each array must be, by "figure / array", as ``values_of_page`` names it; ``None``: it is not drawn.
        options: The address beside the place.
        models: The checkpoints with which it is opened.
    """

    page: str
    arrays: Mapping[str, Callable[[At], Any]]
    options: Mapping[str, str] = field(default_factory=dict)
    models: tuple[str, ...] = (TRANSLATOR, GPT, BERT, SENTIMENT)


# Arrays of whole numbers that stand for fractions, and of bits; all others are fractions.
KINDS = {"attention lines / weights": "step", "heads grid / weights": "step", "attention map / allowed": "exact"}


def path(at: At) -> AttentionPath:
    return attention_path(at.trace, at.stack, at.layer, at.kind, head=at.head)


def length(vectors: np.ndarray) -> np.ndarray:
    return np.linalg.norm(vectors, axis=-1)


DRAWN = (
    Drawn(
        "overview",
        {
            "living picture / encoder.self.weights": lambda at: all_layers(at, "encoder", "self"),
            "living picture / decoder.self.weights": lambda at: all_layers(at, "decoder", "self"),
            "living picture / decoder.cross.weights": lambda at: all_layers(at, "decoder", "cross"),
        },
    ),
    Drawn(
        "embeddings",
        {
            "embedding-rows / 4.z": lambda at: table(at)[list(at.ids)] if at.trace.stacks == (at.stack,) else ANY,
            "row-of-e / row of E": lambda at: table(at)[at.ids[at.token], :8],
            "nearest-rows / 0.x": lambda at: nearest(at)[:8],
        },
        {"embeddings section": "lookup"},
    ),
    Drawn("positions", {"positions-heatmap / 0.z": lambda at: sines(len(at.ids), 32)}, HEATMAP, (TRANSLATOR,)),
    Drawn("positions", {"looks-before-and-after / 0.z": lambda at: swapped(at)}, SWAP),
    Drawn(
        "attention",
        {
            "attention map / values": lambda at: at.view.weights[at.head],
            "attention map / allowed": lambda at: in_bits(at.view.allowed),
            "attention query / values": lambda at: path(at).query,
            "attention key / values": lambda at: path(at).key,
            "attention value / values": lambda at: path(at).value,
        },
        {"attention_step": "1"},
    ),
    Drawn("attention", {"attention step products / values": lambda at: path(at).products}, {"attention_step": "2"}),
    Drawn("attention", {"attention step scaled / values": lambda at: path(at).scores}, {"attention_step": "3"}),
    Drawn(
        "attention",
        {"softmax-of-one-row / 2.y": lambda at: path(at).weights[at.token]},
        {"attention_step": "5"},
        (TRANSLATOR, BERT),
    ),
    Drawn("attention", {"heads-add-up / 0.z": lambda at: added_up(at)}, {"attention_step": "7"}),
    Drawn("attention", {"softmax-row / weight": lambda at: path(at).weights[at.token]}, CELL),
    Drawn("attention", {"attention lines / weights": lambda at: np.rint(65_535 * at.view.weights)}, show("lines")),
    Drawn("attention", {"attention values / values": lambda at: lengths(at)[at.head]}, show("values")),
    Drawn("attention", {"attention rollout / values": lambda at: rolled_out(at)}, show("rollout")),
    Drawn(
        "attention",
        {"attention words / values": lambda at: merge_into_words(at.view).weights[at.head]},
        {"attention_section": "reading"},
    ),
    Drawn("attention", {"strongest-pairs-looks / score": lambda at: circuit(at)}, {"attention_section": "general"}),
    Drawn("heads", {"heads grid / weights": lambda at: np.rint(255 * at.all_weights())}),
    Drawn(
        "heads",
        {
            "heads / entropy (bits)": lambda at: entropies(at),
            "heads / mean distance (tokens)": lambda at: None if at.kind == "cross" else distances(at),
        },
        {"heads_section": "table"},
    ),
    Drawn("lens", {"which-word-through-which-head / added to the logit": lambda at: sources(at)}, AUTHOR),
    Drawn("surgery", {"importance / values": lambda at: importance(at, "change")}),
    Drawn("surgery", {"importance / values": lambda at: importance(at, "kl")}, {"surgery what": "kl"}),
    Drawn("masks", {"mask difference / values": lambda at: masked(at) - at.view.weights[at.head]}, {"mask": "word 1"}),
    Drawn("compare", {"compare heads / values": lambda at: compared(at)}, {"second": OTHER, "compare_more": "heads"}),
    Drawn(
        "add_norm",
        {
            "layer-norm-steps / x": lambda at: normed(at, "input")[:8],
            "layer-norm-steps / output": lambda at: normed(at, "output")[:8],
        },
        {"add norm view": "arithmetic"},
    ),
    Drawn(
        "add_norm",
        {"sublayer-updates / 0.z": lambda at: ratios(at)},
        {"add norm view": "updates"},
        (TRANSLATOR, GPT, SENTIMENT),
    ),
    Drawn(
        "feed_forward",
        {
            "activation-of-one-token / 1.x": lambda at: active(at, "pre_activation")[at.token],
            "strongest-units / 0.x": lambda at: np.sort(np.abs(active(at, "hidden")[at.token]))[::-1][:12],
        },
        {"feed-forward view": "token"},
    ),
    Drawn(
        "feed_forward",
        {"silent-units / 0.y": lambda at: (at.of_layer("feed_forward.hidden", 0) <= 0).mean(-1)},
        {"feed-forward view": "sentence"},
        (TRANSLATOR, SENTIMENT),
    ),
)


def lengths(at: At) -> np.ndarray:
    return norm_weighted(at.trace, at.stack, at.layer, at.kind)


def rolled_out(at: At) -> np.ndarray:
    return attention_rollout(at.trace, at.stack, layer=at.layer).view(at.kind).weights[0]


def active(at: At, name: str) -> np.ndarray:
    return at.of_layer(f"feed_forward.{name}")


def masked(at: At) -> np.ndarray:
    """Return the weights while no row may attend to the second word."""
    edits = edits_from(at.trace.checkpoint, MaskChoices("word", word=1).specs(at.view))
    changed = experiment(at.trace, edits).changed
    return changed.attention(at.stack, at.layer, at.kind).weights[at.head]


def swapped(at: At) -> np.ndarray:
    """Return how the swapped token that sees most attends before and after the swap."""
    pair = (1, 3)
    after = reordered_trace(at.trace, new_order(at.trace, "swap", pair=pair))
    change = attention_change(at.trace, after, (min if at.trace.checkpoint.config.has_encoder else max)(pair))
    return np.stack([change.before, change.after])


def added_up(at: At) -> np.ndarray:
    found = output_sum(at.trace, at.stack, at.layer, at.kind, row=at.token)
    return np.stack([*found.contributions, found.bias, found.output])


def circuit(at: At) -> list[float]:
    found = query_key_circuit(at.trace.checkpoint.model, at.stack, at.kind, layer=at.layer, head=at.head)
    return [value for *_, value in found.strongest(20)]


def sources(at: At) -> list[float]:
    found = attribute(at.trace, None if at.trace.checkpoint.config.class_names else at.token)
    return [source.value for source in strongest_sources(at.trace, found)]


def importance(at: At, number: str) -> np.ndarray:
    measured = {one.place: getattr(one, number) for one in head_importance(at.trace).measured}
    places = sorted(measured, key=lambda place: (place.stack != "encoder", place.kind == "cross", place.layer))
    return np.array([measured[place] for place in places]).reshape(-1, 2)


def compared(at: At) -> np.ndarray:
    return head_differences(at.trace, transformer.trace(at.trace.checkpoint, OTHER), at.stack, at.kind)


def in_bits(mask: np.ndarray) -> np.ndarray:
    """Return the bits of whole bytes, as a mask is sent."""
    return np.unpackbits(np.packbits(mask, bitorder="little"), bitorder="little")


def all_layers(at: At, stack: str, kind: str) -> np.ndarray | None:
    if (stack, kind) not in {(view.stack, view.kind) for view in at.trace.attention_views()}:
        return None
    return np.stack([at.trace.attention(stack, layer, kind).weights for layer in range(at.trace.n_layers(stack))])


def table(at: At) -> np.ndarray:
    return embedding_table(at.trace.checkpoint, at.stack)


def nearest(at: At) -> np.ndarray:
    """Return the cosines of the token's row with all others, the largest first."""
    rows = table(at).astype(np.float64)
    rows /= length(rows)[:, None]
    others = np.delete(rows @ rows[at.ids[at.token]], at.ids[at.token])
    return np.sort(others)[::-1]


def sines(n_tokens: int, d_model: int) -> np.ndarray:
    """Return PE[pos, 2i] = sin(pos / 10000^(2i/d)), PE[pos, 2i+1] = cos (Vaswani et al., section 3.5)."""
    angles = np.arange(n_tokens)[:, None] / 10_000 ** (np.arange(0, d_model, 2) / d_model)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(n_tokens, d_model)


def distances(at: At) -> list[float]:
    weights = at.all_weights()
    apart = np.abs(np.arange(weights.shape[1])[:, None] - np.arange(weights.shape[2]))
    skipped = 1 if at.stack == "decoder" else 0
    return list((weights * apart).sum(-1)[:, skipped:].mean(-1))


def normed(at: At, what: str) -> np.ndarray:
    return at.of_layer(f"self_attention_norm.{what}")[at.token]


def ratios(at: At) -> np.ndarray:
    """Return each sublayer update's length, relative to the stream it is added to, [sublayer, token]."""
    stream = at.stream()
    return np.stack([length(after - before) / length(before) for before, after in pairwise(stream)])


def entropies(at: At) -> list[float]:
    skipped = 1 if (at.stack, at.kind) == ("decoder", "self") else 0  # the first row of a decoder has no choice
    weights = at.all_weights()[:, skipped:]
    return list(-(weights * np.log2(np.where(weights > 0, weights, 1))).sum(-1).mean(-1))


@pytest.fixture(scope="session")
def at(tiny_checkpoint: Callable[[str], transformer.Checkpoint]) -> Callable[[str], At]:
    """Return ``at(model)``, the trace of the sentence and the place that is looked at."""

    @cache
    def found(model: str) -> At:
        place = PLACES[model]
        trace = transformer.trace(tiny_checkpoint(model), SENTENCE)
        return At(trace, place["stack"], place["kind"], *(int(place[name]) for name in ("layer", "head", "token")))

    return found


@pytest.mark.parametrize(
    ("row", "model"),
    [
        pytest.param(row, model, id=", ".join([row.page, *row.options.values(), model]))
        for row in DRAWN
        for model in row.models
    ],
)
def test_an_array_holds_what_was_recorded(open_app, at, row, model) -> None:
    app = open_app(row.page, checkpoint=model, sentence=SENTENCE, **PLACES[model], **row.options)
    found, wrong = values_of_page(app), {}
    for array, numbers in row.arrays.items():
        expected = numbers(at(model))
        assert (array in found) == (expected is not None), f"{array}: the page draws {list(found)}"
        if expected is not None and expected is not ANY:
            wrong[array] = difference(value_of(np.asarray(expected), KINDS.get(array, "float")), found[array])
    assert not any(wrong.values()), wrong
