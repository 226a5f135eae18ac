"""What a page draws and says is what the trace holds: a row for each view.

The numbers that reach the browser are read as ``tests/golden/readers.py`` reads them, under "figure / array"; each is
compared with NumPy on the recorded activations, or with the one function of the library that is tested by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import transformer
from charts.toolkit.style import signed, three_digits
from tests.golden.readers import values_of_page
from tests.golden.store import difference, value_of
from tests.pages.conftest import is_fine, metrics, said
from transformer.attention_maps.attention_path import AttentionPath, attention_path, norm_weighted, output_sum
from transformer.attention_maps.rollout import attention_rollout
from transformer.attention_maps.whole_words import merge_into_words
from transformer.attribution.direct_logit_attribution import attribute, strongest_sources
from transformer.attribution.leave_one_out import leave_one_out
from transformer.heads.head_circuits import query_key_circuit
from transformer.interventions.experiment import Experiment, experiment, padding_drift
from transformer.interventions.head_importance import head_importance
from transformer.interventions.reordering import attention_change, new_order, reordered_trace
from transformer.layers.embedding_lookup import embedding_table
from transformer.layers.gradient_step import training_step
from transformer.layers.positional_encodings import without_positions
from transformer.layers.residual_stream import label_in_sentence
from transformer.predictions.answer_probabilities import read_answer
from transformer.predictions.comparison import head_differences
from transformer.predictions.hypothesis_tree import beam_tree
from transformer.predictions.lens import logit_lens
from transformer.runs.edit_specs import edits_from
from transformer.runs.mask_choices import MaskChoices
from transformer.runs.traces import Trace
from ui.words.texts import as_plain, filled, label_in_words, page_text

SENTENCE = "The old man told us a story, and the sea was cold."
OTHER = SENTENCE.replace("story", "lie")
TRANSLATOR, GPT, BERT, SENTIMENT = "tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"
ENCODER = {"stack": "encoder", "kind": "self", "layer": "1", "head": "1", "token": "3"}
DECODER = {**ENCODER, "stack": "decoder"}
CROSS = {**DECODER, "kind": "cross"}
CELL = {"attention_key": "1", "cell_whole_row": "true"}
AUTHOR, SWAP, HEATMAP = {"lens_view": "author"}, {"swap first": "1", "swap second": "3"}, {"positions view": "heatmap"}
BLANK, SEED = "The old ___ told us a story.", {"seed": "3"}
EDITS = ["zero:decoder.0.self.1", "scale:decoder.0.self.0=2", "residual:decoder.1.feed_forward"]
MEAN = ["mean:encoder.1.self.0", "zero:encoder.0.self.1"]
STRATEGIES = {"decoding_section": "strategies", "beam_width": "3", "length_penalty": "1.0", **SEED}
TREE = {"decoding_section": "tree", "beam_width": "3", "length_penalty": "2.0"}
ANY = object()  # whatever an array holds
PLACES = {TRANSLATOR: CROSS, GPT: DECODER, BERT: ENCODER, SENTIMENT: ENCODER}
ONE_STACK = (GPT, BERT, SENTIMENT)


def show(drawing: str) -> dict[str, str]:
    return {"attention_show": drawing}


def teach(name: str) -> dict[str, str]:
    return {"embeddings section": "training", "training class": name}


def optimize(name: str) -> dict[str, str]:
    return {"training section": "step", "training optimizer": name}


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

    @property
    def checkpoint(self) -> transformer.Checkpoint:
        return self.trace.checkpoint

    def under(self, *specs: str) -> Experiment:
        """Return the run under these edits, in which ``{stack}`` and ``{kind}`` stand for those of the place."""
        edits = [spec.format(stack=self.stack, kind=self.kind) for spec in specs]
        return experiment(self.trace, edits_from(self.checkpoint, edits))

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
        options: The address beside the place; also another place, sentence or padding.
        models: The checkpoints with which it is opened.
        says: What its sentences, labelled numbers and tables contain.
    """

    page: str
    arrays: Mapping[str, Callable[[At], Any]] = field(default_factory=dict)
    options: Mapping[str, str | list[str]] = field(default_factory=dict)
    models: tuple[str, ...] = (TRANSLATOR, GPT, BERT, SENTIMENT)
    says: Callable[[At], Sequence[str]] = lambda at: ()

    @property
    def name(self) -> str:
        options = [" ".join(value) if isinstance(value, list) else value for value in self.options.values()]
        return ", ".join([self.page, *options])


# Arrays of whole numbers that stand for fractions, and of bits; all others are fractions.
KINDS = {"attention lines / weights": "step", "heads grid / weights": "step", "attention map / allowed": "exact"}


def path(at: At) -> AttentionPath:
    return attention_path(at.trace, at.stack, at.layer, at.kind, head=at.head)


def length(vectors: np.ndarray) -> np.ndarray:
    return np.linalg.norm(vectors, axis=-1)


def sizes(at: At) -> list[str]:
    text = page_text("overview")
    computed = sum(at.trace.values(name).size for name in at.trace.names())
    return [f"{text['numbers']}: {computed:,}", f"{text['parameters']}: {at.checkpoint.model.n_parameters:,}"]


def output(at: At) -> list[str]:
    found = read_answer(at.trace)
    probability = f"{page_text('overview')['probability']}: {three_digits(found.probability)}"
    return [probability, *([" ".join(found.text.split())] if at.checkpoint.name != BERT else [])]


def counts(at: At) -> list[str]:
    tokenizer = at.checkpoint.tokenizer
    n_tokens = len(tokenizer.encode(SENTENCE))
    return [
        f"**{n_tokens}** tokens for **{len(SENTENCE)}** characters",
        f"**{tokenizer.vocabulary_size}** entries",
    ]


def still_rows(at: At) -> list[str]:
    """Return how many rows of an untied embedding a step of training leaves where they are."""
    count = len(table(at))
    return [f"{count - len({*at.ids})} of {count} did not move"]


def taught(at: At, label: int) -> list[str]:
    loss = -np.log(chances(at.trace, None)[label])
    return [f"It changes from **{three_digits(float(loss))}**"]


def shares_of_the_row(at: At, values: np.ndarray) -> list[str]:
    """Return the numbers about a row of a map: its entropy, and what goes to special tokens."""
    text, shares = page_text("attention"), values[at.token] / values[at.token].sum()
    entropy, sinks = -(shares * np.log2(np.where(shares > 0, shares, 1))).sum(), shares[at.view.sinks].sum()
    named = {"entropy": entropy, "sinks": sinks}
    return [f"{text[name]}: {three_digits(float(value))}" for name, value in named.items()]


def of_the_row(at: At, values: np.ndarray) -> list[str]:
    text, key = page_text("attention"), at.view.key.labels[int(lengths(at)[at.head, at.token].argmax())]
    named = [*shares_of_the_row(at, values), f"{text['strongest']}: {as_plain(label_in_words(key))}"]
    if at.checkpoint.name == BERT:  # nothing is masked, so there is no output
        return named
    return [*named, f"× {three_digits(at.under(f'zero:{{stack}}.{at.layer}.{{kind}}.{at.head}').factor)}"]


def from_one_to_another(at: At) -> list[str]:
    """Return the weights of every head from one token to another, and the head that is chosen."""
    return ["**Layer 1, head 1**", *(str(float(weight)) for weight in at.all_weights()[:, 3, 1])]


def scheme(at: At) -> list[str]:
    """Return the name of the model's positions, and that a causal mask is not reordered."""
    text, config = page_text("positions"), at.checkpoint.config
    return [f"#### {text['scheme'][config.positions]}", *([] if config.has_encoder else [text["causal_note"]])]


def without_order(at: At) -> list[str]:
    """Return the probability of the output without the positions of the stack that reads the sentence."""
    edits = without_positions(at.checkpoint.model, at.trace.stacks[0])
    return [three_digits(read_answer(transformer.trace(at.checkpoint, SENTENCE, edits=edits)).probability)]


def read_out(at: At) -> list[str]:
    """Return what the page says of a column of the lens, and of the columns beside it."""
    lens = logit_lens(at.trace)
    column = lens.column(at.token + lens.of_classes)
    text = page_text("lens").instead("of_classes") if lens.of_classes else page_text("lens")
    words = [word.removeprefix("·") or word for word in (column.read, column.word)]
    norm = page_text("lens")["pre" if lens.final_norm else "post"].format(norm="LayerNorm")
    return [*words, three_digits(column.probability), text["legend_top"], norm]


def summed_up(at: At) -> list[str]:
    found = attribute(at.trace, None if at.checkpoint.config.class_names else at.token)
    mean = [page_text("lens")["author_mean"].split(" {")[0]] if at.checkpoint.config.class_names else []
    return [f"**{three_digits(found.logit)}**", f"**{label_in_sentence(found.strongest(1)[0].label)}**", *mean]


def under_edits(at: At, *specs: str) -> list[str]:
    effect = at.under(*specs)
    return [signed(float(effect.after.sum())), page_text("surgery")["causes"]]


def under_mask(at: At, mask: str) -> list[str]:
    effect = at.under(f"mask:{{stack}}.*.{{kind}}={mask}")
    blocked = int((~effect.changed.attention(at.stack, at.layer, at.kind).allowed).sum())
    return [signed(float(effect.after.sum())), f"{blocked:,} of "]


def claim_of_the_norm(at: At) -> list[str]:
    """Return what the page says of the norm of the place, up to the standard deviation after it."""
    text, order = page_text("add_norm"), "post" if at.checkpoint.name == BERT else "pre"
    token = at.trace.tokens(at.stack)[at.token].display
    values = {"token": token, "sublayer": text["norm"]["self_attention_norm"], "one": "<one>"}
    deviation = at.of_layer("self_attention_norm.input")[at.token].astype(np.float64).std()
    return filled(text[f"claim_{order}"], {**values, "std": deviation}, markdown=False).split("<one>")


def sampled(at: At) -> list[str]:
    return [transformer.decode(at.checkpoint, SENTENCE, transformer.Sample(seed=3)).text]


def written(at: At) -> list[str]:
    """Return what each strategy writes."""
    strategies = (transformer.Greedy(), transformer.Sample(seed=3), transformer.Beam(3, length_penalty=1.0))
    return [transformer.decode(at.checkpoint, SENTENCE, strategy).text for strategy in strategies]


def window(at: At, first: int) -> list[str]:
    tree = beam_tree(at.checkpoint, SENTENCE, transformer.Beam(3, length_penalty=2.0))
    return [f"{first} to {first + 11} of {tree.n_steps}", *(one.text for one in tree.hypotheses)]


def verdict(at: At) -> list[str]:
    found = leave_one_out(at.checkpoint, SENTENCE, pads=3)
    best = int(found.probabilities.argmax())
    return [f"**{found.class_names[best]}**", f"**{three_digits(float(found.probabilities[best]))}**"]


def losses(at: At, **how: Any) -> list[str]:
    masked = at.token if at.checkpoint.name == BERT else 0  # the token that is predicted
    step = training_step(at.trace, stack=at.trace.stacks[-1], masked=masked, **how)
    named = {"before": step.loss_before, "after": step.loss_after}
    return [f"{page_text('training')[f'step_{name}']}: {three_digits(loss)}" for name, loss in named.items()]


def fires(at: At) -> list[str]:
    """Return how many units of the token are active."""
    return [f"{(active(at, 'pre_activation')[at.token] > 0).sum()} of "]


def padded(at: At) -> list[str]:
    """Return the largest change of a logit by four padding tokens that are not masked."""
    return [three_digits(max(row.logits for row in padding_drift(at.trace, pads=(4,))))]


def parameters(at: At) -> list[str]:
    return [f"{at.checkpoint.model.n_parameters:,}"]


def chances(run: Trace, row: int | None) -> np.ndarray:
    """Return the probability of every token in a row of the logits; without a row, of every class."""
    stack = run.stacks[-1]
    logits = run.values("classifier.logits") if row is None else run.values(f"{stack}.logits")[row]
    powers = np.exp(logits.astype(float))
    if row is not None and stack == "decoder":
        powers[list(run.checkpoint.framing.never)] = 0  # never generated
    return powers / powers.sum()


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


DRAWN = (
    Drawn(
        "overview",
        {
            "living picture / encoder.self.weights": lambda at: all_layers(at, "encoder", "self"),
            "living picture / decoder.self.weights": lambda at: all_layers(at, "decoder", "self"),
            "living picture / decoder.cross.weights": lambda at: all_layers(at, "decoder", "cross"),
        },
        says=lambda at: [*sizes(at), *(output(at) if at.checkpoint.name != BERT else ())],  # where nothing is masked
    ),
    Drawn(
        "embeddings",
        {
            "embedding-rows / 4.z": lambda at: table(at)[list(at.ids)] if at.trace.stacks == (at.stack,) else ANY,
            "row-of-e / row of E": lambda at: table(at)[at.ids[at.token], :8],
            "row-of-e / one-hot @ E": lambda at: table(at)[at.ids[at.token], :8],
            "row-of-e / recorded by the probe": lambda at: at.trace.values(f"{at.stack}.embedding.token")[at.token, :8],
            "nearest-rows / 0.x": lambda at: nearest(at)[:8],
        },
        {"embeddings section": "lookup"},
        says=lambda at: ["between the two is **0**"],
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
    Drawn(
        "attention",
        {"attention values / values": lambda at: lengths(at)[at.head]},
        show("values"),
        says=lambda at: of_the_row(at, lengths(at)[at.head]),
    ),
    Drawn(
        "attention",
        {"attention rollout / values": lambda at: rolled_out(at)},
        show("rollout"),
        says=lambda at: shares_of_the_row(at, rolled_out(at)),
    ),
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
    Drawn(
        "lens",
        {"which-word-through-which-head / added to the logit": lambda at: sources(at)},
        AUTHOR,
        says=lambda at: summed_up(at),
    ),
    Drawn("surgery", {"importance / values": lambda at: importance(at, "change")}),
    Drawn("surgery", {"importance / values": lambda at: importance(at, "kl")}, {"surgery what": "kl"}),
    Drawn("masks", {"mask difference / values": lambda at: masked(at) - at.view.weights[at.head]}, {"mask": "word 1"}),
    Drawn(
        "compare",
        {"compare heads / values": lambda at: compared(at)},
        {"second": OTHER, "compare_more": "heads"},
        says=lambda at: [f"The scale ends at the largest value, {three_digits(float(compared(at).max()))}"],
    ),
    Drawn(
        "add_norm",
        {
            "layer-norm-steps / dimension": lambda at: np.arange(5, 13),
            "layer-norm-steps / x": lambda at: normed(at, "input")[5:13],
            "layer-norm-steps / output": lambda at: normed(at, "output")[5:13],
        },
        {"add norm view": "arithmetic", "first dimension": "5"},
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

# Views of which the sentences are tested; their numbers are golden values.
SAID = (
    Drawn("overview", options={"sentence": BLANK}, models=(BERT,), says=output),
    Drawn("tokens", options=ENCODER, models=(TRANSLATOR, BERT, SENTIMENT), says=counts),
    Drawn("embeddings", options={"embeddings section": "training"}, models=(TRANSLATOR,), says=still_rows),
    Drawn("embeddings", options=teach("negative"), models=(SENTIMENT,), says=lambda at: taught(at, 0)),
    Drawn("embeddings", options=teach("positive"), models=(SENTIMENT,), says=lambda at: taught(at, 1)),
    Drawn("attention", options=show("map"), says=lambda at: of_the_row(at, at.view.weights[at.head])),
    Drawn("add_norm", says=claim_of_the_norm),
    Drawn("feed_forward", options={"feed-forward view": "token"}, says=fires),
    Drawn("heads", options={"heads_section": "table", "heads_from": "3", "heads_to": "1"}, says=from_one_to_another),
    Drawn("positions", says=scheme),
    Drawn("positions", options={"order change": "remove"}, models=(TRANSLATOR, GPT, SENTIMENT), says=without_order),
    Drawn("lens", options={"token": "2"}, says=read_out),
    Drawn("masks", options={"mask": "no_causal"}, models=(GPT,), says=lambda at: under_mask(at, "no_causal")),
    Drawn("masks", options={"mask": "no_padding"}, models=(BERT,), says=lambda at: under_mask(at, "no_padding")),
    Drawn("masks", options={"mask": "window 2"}, models=ONE_STACK, says=lambda at: under_mask(at, "window 2")),
    Drawn("masks", options={"mask": "itself"}, models=ONE_STACK, says=lambda at: under_mask(at, "itself")),
    Drawn("masks", options={"masks view": "padding"}, says=padded),
    Drawn("surgery", options={"edit": EDITS}, models=(TRANSLATOR, GPT), says=lambda at: under_edits(at, *EDITS)),
    Drawn("surgery", options={"edit": MEAN}, models=(BERT, SENTIMENT), says=lambda at: under_edits(at, *MEAN)),
    Drawn("decoding", options={"strategy": "sampling", **SEED}, models=(TRANSLATOR, GPT), says=sampled),
    Drawn("decoding", options=STRATEGIES, models=(TRANSLATOR, GPT), says=written),
    Drawn("decoding", options={**TREE, "first step": "1"}, models=(TRANSLATOR,), says=lambda at: window(at, 1)),
    Drawn("decoding", options={**TREE, "first step": "3"}, models=(TRANSLATOR,), says=lambda at: window(at, 3)),
    Drawn("decoding", options={"pads": "3"}, models=(SENTIMENT,), says=verdict),
    Drawn("training", options=optimize("adam"), says=lambda at: losses(at, optimizer="adam", rate=0.001)),
    Drawn("training", options=optimize("sgd"), says=losses),
    Drawn("checkpoint", options={"checkpoint view": "weights"}, says=parameters),
)


@pytest.fixture(scope="session")
def place_of(tiny_checkpoint: Callable[[str], transformer.Checkpoint]) -> Callable[[Drawn, str], At]:
    """Return ``place_of(row, model)``, the trace of the sentence and the place that is looked at."""

    @cache
    def traced(model: str, sentence: str, pads: int) -> Trace:
        return transformer.trace(tiny_checkpoint(model), sentence, source_pads=pads)

    def found(row: Drawn, model: str) -> At:
        place = {"sentence": SENTENCE, "pads": "0", **PLACES[model], **row.options}
        trace = traced(model, place["sentence"], int(place["pads"]))
        return At(trace, place["stack"], place["kind"], *(int(place[name]) for name in ("layer", "head", "token")))

    return found


def shown_text(app: AppTest) -> str:
    """Return the sentences, labelled numbers and tables of a page."""
    numbers = [f"{label}: {value}" for label, value in metrics(app).items()]
    return "\n".join(
        [said(app), *numbers, *(str(cell) for table in app.dataframe for cell in table.value.to_numpy().ravel())]
    )


@pytest.mark.parametrize(
    ("row", "model"),
    [pytest.param(row, model, id=f"{row.name}, {model}") for row in (*DRAWN, *SAID) for model in row.models],
)
def test_an_array_holds_what_was_recorded(open_app, place_of, row, model) -> None:
    app = open_app(row.page, checkpoint=model, **{"sentence": SENTENCE, **PLACES[model], **row.options})
    is_fine(app)
    at, found, text, wrong = place_of(row, model), values_of_page(app), shown_text(app), {}
    for array, numbers in row.arrays.items():
        expected = numbers(at)
        assert (array in found) == (expected is not None), f"{array}: the page draws {list(found)}"
        if expected is not None and expected is not ANY:
            expected = np.asarray(expected)
            kind = KINDS.get(array, {"U": "text", "i": "exact"}.get(expected.dtype.kind, "float"))
            wrong[array] = difference(value_of(expected, kind), found[array])
    assert not any(wrong.values()), wrong
    assert not [part for part in row.says(at) if part not in text], text
