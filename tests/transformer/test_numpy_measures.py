"""Edits, decoding and measures recomputed: in NumPy, by loops from the papers, by SciPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from tests.shipped import shipped
from tests.transformer.numpy_forward import END, MASK, START, Arrays, by_hand, compare
from transformer.attribution.input_attribution import gradient_times_input, integrated_gradients
from transformer.attribution.leave_one_out import leave_one_out, remove_each
from transformer.heads.weight_patterns import monotonicity
from transformer.predictions.comparison import head_divergence
from transformer.predictions.target import quantity_of
from transformer.runs.edit_specs import edits_from
from transformer.training.evaluation import evaluate

# ---- edits -----------------------------------------------------------------------------------------------------------

SENTENCE, TARGET, OTHER = "The cat sat on the mat.", "Le chat dort.", "It is raining on the old garden today."
PAD = 0


def run_by_hand(name: str, trace: transformer.Trace, changes: dict | None = None) -> Arrays:
    read = (list(part.ids) if part is not None else None for part in (trace.source, trace.target))
    return by_hand(name).forward(*read, changes)


# ---- edits ----------------------------------------------------------------------------------------------------------


def one_head(head: int, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    def edit(context: np.ndarray) -> np.ndarray:  # [head, query, channel]
        context = context.copy()
        context[head] = change(context[head])
        return context

    return edit


def mean_so_far(rows: np.ndarray) -> np.ndarray:
    return np.stack([rows[: row + 1].mean(axis=0) for row in range(len(rows))])


def cell_by_cell(rule: Callable[[int, int, bool], bool]) -> Callable[[np.ndarray], np.ndarray]:
    """Return a mask from a rule about query, key and whether the model allows the cell."""
    return lambda mask: np.array(
        [[rule(query, key, bool(mask[query, key])) for key in range(mask.shape[1])] for query in range(mask.shape[0])]
    )


def without_edge(weights: np.ndarray) -> np.ndarray:
    weights = weights.copy()
    weights[1, 2, 3] = 0
    return weights


ENCODER, DECODER, CROSS = (
    "encoder.layers.1.self_attention",
    "decoder.layers.1.self_attention",
    "decoder.layers.1.cross_attention",
)
EVERY_LAYER = [f"decoder.layers.{layer}.self_attention.allowed" for layer in range(3)]
EDITS = {
    "zero:encoder.1.self.3": {f"{ENCODER}.context": one_head(3, lambda rows: rows * 0)},
    "zero:decoder.1.cross.7": {f"{CROSS}.context": one_head(7, lambda rows: rows * 0)},
    "scale:decoder.1.self.2=-1.5": {f"{DECODER}.context": one_head(2, lambda rows: rows * -1.5)},
    "mean:encoder.1.self.0": {f"{ENCODER}.context": one_head(0, lambda rows: np.tile(rows.mean(0), (len(rows), 1)))},
    "mean:decoder.1.cross.4": {f"{CROSS}.context": one_head(4, mean_so_far)},
    "edge:decoder.1.cross.1=2-3": {f"{CROSS}.weights": without_edge},
    "drop:encoder.1.feed_forward": {"encoder.layers.1.feed_forward.output": lambda x: x * 0},
    "drop:decoder.1.cross": {f"{CROSS}.output": lambda x: x * 0},
    "mask:decoder.*.self=no_causal": dict.fromkeys(EVERY_LAYER, cell_by_cell(lambda query, key, allowed: True)),
    "mask:encoder.1.self=no_padding": {f"{ENCODER}.allowed": cell_by_cell(lambda query, key, allowed: True)},
    "mask:encoder.1.self=window 2": {
        f"{ENCODER}.allowed": cell_by_cell(lambda query, key, allowed: allowed and abs(query - key) < 2)
    },
    "mask:decoder.*.self=itself": dict.fromkeys(EVERY_LAYER, cell_by_cell(lambda query, key, allowed: query == key)),
    "mask:decoder.1.cross=keys 0,4": {
        f"{CROSS}.allowed": cell_by_cell(lambda query, key, allowed: allowed and key not in (0, 4))
    },
    "mask:decoder.1.self=block 0-0": {  # the first row may attend to nothing
        f"{DECODER}.allowed": cell_by_cell(lambda query, key, allowed: allowed and (query, key) != (0, 0))
    },
    "mask:decoder.1.self=allow 1-3": {
        f"{DECODER}.allowed": cell_by_cell(lambda query, key, allowed: allowed or (query, key) == (1, 3))
    },
}


@pytest.fixture(scope="module")
def plain_logits() -> np.ndarray:
    return run_by_hand("en-fr", transformer.trace(shipped("en-fr"), SENTENCE, TARGET, source_pads=3))["decoder.logits"]


@pytest.mark.parametrize("spec", EDITS)
def test_every_edit_does_what_is_done_by_hand(spec: str, plain_logits: np.ndarray) -> None:
    checkpoint = shipped("en-fr")
    found = transformer.trace(checkpoint, SENTENCE, TARGET, edits=edits_from(checkpoint, [spec]), source_pads=3)
    expected = run_by_hand("en-fr", found, EDITS[spec])
    compare(found.activations, expected)
    assert np.abs(expected["decoder.logits"] - plain_logits).max() > 1e-3, "else the edit would prove nothing"


def test_a_head_of_another_run_and_an_activation_of_another_run() -> None:
    checkpoint = shipped("en-fr")
    there = run_by_hand("en-fr", transformer.trace(checkpoint, OTHER))[f"{ENCODER}.context"][5]
    found = transformer.trace(
        checkpoint, SENTENCE, TARGET, edits=edits_from(checkpoint, [f"patch:encoder.1.self.5={OTHER}"])
    )
    n_read = len(found.source)
    assert len(there) > n_read
    compare(
        found.activations, run_by_hand("en-fr", found, {f"{ENCODER}.context": one_head(5, lambda rows: there[:n_read])})
    )


@pytest.mark.parametrize("part", ["self", "cross", "feed_forward"])
def test_without_a_residual_the_stream_is_what_the_sublayer_says(part: str) -> None:
    checkpoint = shipped("en-fr")
    found = transformer.trace(
        checkpoint, SENTENCE, TARGET, edits=edits_from(checkpoint, [f"residual:decoder.1.{part}"])
    )
    sublayer = part if part == "feed_forward" else f"{part}_attention"
    after = "out" if part == "feed_forward" else f"after_{sublayer}"
    expected = run_by_hand(
        "en-fr",
        found,
        {f"decoder.layers.1.residual.{after}": lambda x: by_hand("en-fr").seen[f"decoder.layers.1.{sublayer}.output"]},
    )
    compare(found.activations, expected)


# ---- writing --------------------------------------------------------------------------------------------------------


def log_p_by_hand(name: str, source: list[int] | None, prompt: list[int]) -> np.ndarray:
    """Return log p of the next token, [vocabulary], computed from scratch, without ``<pad>`` and ``<s>``."""
    logits = by_hand(name).forward(source, prompt)["decoder.logits"][-1].copy()
    logits[[PAD, START]] = -np.inf
    highest = logits.max()
    return logits - highest - math.log(np.exp(logits - highest).sum())


def source_of(name: str, sentence: str) -> tuple[list[int] | None, list[int]]:
    """Return the input of the encoder, and the first tokens of the decoder."""
    ids = shipped(name).tokenizer.encode(sentence)
    return ([*ids, END], [START]) if by_hand(name).config["kind"] == "encoder-decoder" else (None, [START, *ids])


@pytest.mark.parametrize("name", ["en-fr", "gpt-en"])
def test_greedy_is_a_plain_loop(name: str) -> None:
    source, prompt = source_of(name, SENTENCE)
    found = transformer.decode(shipped(name), SENTENCE, transformer.Greedy(max_new_tokens=8))
    ids, total = [], 0.0
    while len(ids) < 8 and END not in ids:
        log_p = log_p_by_hand(name, source, prompt + ids)
        ids.append(int(log_p.argmax()))
        total += log_p[ids[-1]]
    assert list(found.tokens.ids) == ids
    assert found.log_probability == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("name", ["en-fr", "gpt-en"])
@pytest.mark.parametrize(
    "settings", [{"temperature": 0.7}, {"top_k": 3}, {"temperature": 1.6, "top_k": 40, "top_p": 0.8}]
)
def test_sampling_is_a_plain_loop(name: str, settings: dict) -> None:
    source, prompt = source_of(name, SENTENCE)
    found = transformer.decode(shipped(name), SENTENCE, transformer.Sample(**settings, seed=5, max_new_tokens=4))
    generator = torch.Generator().manual_seed(5)
    ids: list[int] = []
    for step in found.steps:
        log_p = log_p_by_hand(name, source, prompt + ids)
        powers = np.exp(log_p / settings.get("temperature", 1.0))
        order = sorted(range(len(powers)), key=lambda id: -powers[id])
        kept = order[: settings.get("top_k", len(order))]
        whole, mass, nucleus = powers[kept].sum(), 0.0, []
        for id in kept:
            if mass >= settings.get("top_p", 1.0):
                break
            nucleus.append(id)
            mass += powers[id] / whole
        chances = np.zeros_like(powers)
        chances[nucleus] = powers[nucleus] / powers[nucleus].sum()
        for candidate in step.candidates:
            assert candidate.probability == pytest.approx(math.exp(log_p[candidate.id]), abs=2e-5)
            assert candidate.chance == pytest.approx(chances[candidate.id], abs=5e-5)
        drawn = int(torch.multinomial(torch.tensor(chances, dtype=torch.float32), 1, generator=generator))
        assert step.chosen.id == drawn
        ids.append(drawn)


@pytest.mark.parametrize(("name", "exponent"), [("en-fr", 0.6), ("gpt-en", 2.0)])
def test_a_beam_is_a_plain_loop(name: str, exponent: float) -> None:
    """Wu et al. 2016, §7: keep ``width`` texts; ended ones score log p / ((5 + |Y|) / 6)^exponent."""
    width, limit = 3, 9
    source, prompt = source_of(name, "He sleeps.")
    found = transformer.decode(shipped(name), "He sleeps.", transformer.Beam(width, exponent, max_new_tokens=limit))
    live, finished = [(0.0, [])], []
    for length in range(1, limit + 1):
        longer = []
        for total, ids in live:
            log_p = log_p_by_hand(name, source, prompt + ids)
            finished.append(((total + log_p[END]) / ((5 + length) / 6) ** exponent, [*ids, END]))
            best = [int(id) for id in np.argsort(-log_p)[: width + 1] if id != END]
            longer += [(total + log_p[id], [*ids, id]) for id in best]
        live = sorted(longer, reverse=True)[:width]
    score, ids = max(finished)
    assert list(found.hypotheses[0].ids) == ids
    assert found.hypotheses[0].score == pytest.approx(score, abs=1e-4)


REVIEW = "The film was not bad."


@pytest.fixture(scope="module")
def translated() -> transformer.Trace:
    return transformer.trace(shipped("en-fr"), REVIEW, "Le film est mauvais.")


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


# ---- distributions --------------------------------------------------------------------------------------------------


def test_the_divergence_of_heads_is_scipys(translated: transformer.Trace) -> None:
    """Return the divergence; ``jensenshannon`` returns its square root."""
    distance = pytest.importorskip("scipy.spatial.distance")
    first, second = (translated.attention("decoder", layer, "cross") for layer in (0, 2))
    expected = distance.jensenshannon(first.weights, second.weights, base=2, axis=-1) ** 2  # [head, query]
    np.testing.assert_allclose(head_divergence(first, second), expected.mean(axis=1), atol=1e-5)


def test_kendalls_tau_is_scipys(translated: transformer.Trace) -> None:
    stats = pytest.importorskip("scipy.stats")
    weights = np.concatenate([translated.attention("decoder", layer, "cross").weights for layer in range(3)])
    for found, head in zip(monotonicity(weights), weights, strict=True):
        expected = stats.kendalltau(range(head.shape[0]), head.argmax(axis=-1), variant="b").statistic
        assert found == pytest.approx(0.0 if math.isnan(expected) else expected)


# ---- where an answer comes from -------------------------------------------------------------------------------------


def logit_of_class(rows: np.ndarray, label: int, ids: list[int]) -> float:
    """Return the logit of a class in NumPy, from the embedding rows before positions are added."""
    model = by_hand("sentiment")
    embed = model.embed
    model.embed = lambda stack, ids: rows + model.weights[f"{stack}.embedding.position_encoding.table"][: len(ids)]
    try:
        return float(model.forward(ids, None)["classifier.logits"][label])
    finally:
        model.embed = embed


def test_gradients_are_differences_of_numpys_forward_pass() -> None:
    """Both are slopes along one token's embedding, (F(x + h d) − F(x − h d)) / 2h; the token is "bad"."""
    checkpoint, model = shipped("sentiment"), by_hand("sentiment")
    trace = transformer.trace(checkpoint, "not bad")
    ids, quantity, token = list(trace.source.ids), quantity_of(trace, of="logit"), 2
    label = int(trace.values("classifier.logits").argmax())
    rows = model.embed("encoder", ids) - model.weights["encoder.embedding.position_encoding.table"][: len(ids)]
    step = np.zeros_like(rows)
    step[token] = 1e-4 * rows[token]

    def slope(at: np.ndarray) -> float:
        return (logit_of_class(at + step, label, ids) - logit_of_class(at - step, label, ids)) / 2e-4

    found = gradient_times_input(checkpoint, quantity).source[token]
    assert found == pytest.approx(slope(rows), abs=1e-4)
    assert abs(found) > 1e-2
    places, weights = np.polynomial.legendre.leggauss(12)  # on −1 … 1; the path runs from 0 to 1
    path = sum(weight / 2 * slope((place + 1) / 2 * rows) for place, weight in zip(places, weights, strict=True))
    found = integrated_gradients(checkpoint, quantity, baseline="zero", n_steps=12).source[token]
    assert found == pytest.approx(path, abs=2e-4)


def test_leaving_a_word_out_is_reading_the_rest() -> None:
    checkpoint, model = shipped("sentiment"), by_hand("sentiment")
    trace = transformer.trace(checkpoint, REVIEW)
    ids, quantity = list(trace.source.ids), quantity_of(trace)
    label = int(trace.values("classifier.logits").argmax())

    def p(rest: list[int]) -> float:
        return float(softmax(model.forward(rest, None)["classifier.logits"])[label])

    removed = remove_each(checkpoint, quantity).source
    for token in range(len(ids)):
        expected = math.log(p(ids)) - math.log(p(ids[:token] + ids[token + 1 :]))
        assert removed[token] == pytest.approx(expected, abs=1e-4)
    words = leave_one_out(checkpoint, REVIEW)
    assert [word.text for word in words.words] == ["The", "film", "was", "not", "bad", "."]
    effects = words.contributions[:, label]
    assert words.predicted == label and words.decisive == (effects.argmax() if effects.max() > 0 else None)
    for word, contributions in zip(words.words, words.contributions, strict=True):
        expected = p(ids) - p(ids[: word.start] + ids[word.end :])
        assert contributions[label] == pytest.approx(expected, abs=1e-5)


# ---- scores ---------------------------------------------------------------------------------------------------------


def test_accuracy_is_a_count(tmp_path: Path) -> None:
    texts = ["A wonderful film.", "I was bored.", "Not good, not bad.", "The worst day of my life!", "We loved it."]
    labels = [1, 0, 1, 0, 0]
    right = 0
    for text, label in zip(texts, labels, strict=True):
        ids = [START, *shipped("sentiment").tokenizer.encode(text), END]
        right += int(by_hand("sentiment").forward(ids, None)["classifier.logits"].argmax()) == label
    path = tmp_path / "texts.tsv"
    path.write_text("".join(f"{text}\t{label}\n" for text, label in zip(texts, labels, strict=True)), encoding="utf-8")
    assert evaluate(shipped("sentiment"), path)["accuracy"] == pytest.approx(right / 5)
    assert 0 < right < 5, "else a constant would pass, too"


def test_perplexity_is_a_product_of_chances(tmp_path: Path) -> None:
    texts, surprise, n_tokens = ["She reads a book.", "It rained."], 0.0, 0
    for text in texts:
        ids = [START, *shipped("gpt-en").tokenizer.encode(text), END]
        logits = by_hand("gpt-en").forward(None, ids[:-1])["decoder.logits"]
        surprise -= sum(math.log(softmax(row)[id]) for row, id in zip(logits, ids[1:], strict=True))
        n_tokens += len(ids) - 1
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(texts), encoding="utf-8")
    scores = evaluate(shipped("gpt-en"), path)
    assert scores["perplexity_per_word"] == pytest.approx(math.exp(surprise / 6), rel=1e-4)
    assert scores["perplexity_per_token"] == pytest.approx(math.exp(surprise / n_tokens), rel=1e-4)


def test_a_masked_word_counts_when_all_its_pieces_come_back(tmp_path: Path) -> None:
    """One word per sentence, so that there is no choice of the masked word."""
    words, right = ["Yes", "Tomorrow", "Umbrella", "The", "I"], 0
    for word in words:
        ids = shipped("bert-en").tokenizer.encode(word)
        logits = by_hand("bert-en").forward([START, *[MASK] * len(ids), END], None)["encoder.logits"]
        right += list(logits[1:-1].argmax(axis=-1)) == ids
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(words), encoding="utf-8")
    assert evaluate(shipped("bert-en"), path)["masked_accuracy"] == pytest.approx(right / len(words))


def test_bleu_is_sacrebleus(tmp_path: Path) -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    pairs = [("He sleeps.", "Il dort."), ("I am tired.", "Je suis très fatigué."), ("He sleeps.", "Elle dort.")]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    written = [
        transformer.decode(shipped("en-fr"), text, transformer.Beam(2)).text for text in ("He sleeps.", "I am tired.")
    ]
    references = [["Il dort.", "Je suis très fatigué."], ["Elle dort.", None]]
    scores = evaluate(shipped("en-fr"), path, beam=2)
    assert scores["bleu"] == pytest.approx(sacrebleu.corpus_bleu(written, references).score)
    assert scores["chrf"] == pytest.approx(sacrebleu.corpus_chrf(written, references).score)
