"""Measures on a trace, recomputed by loops from the papers, by SciPy, or with a forward pass in NumPy."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import transformer
from tests.transformer.numpy_forward import NumpyTransformer
from transformer.attention_maps.rollout import attention_rollout
from transformer.attribution.input_attribution import gradient_times_input, integrated_gradients
from transformer.attribution.leave_one_out import leave_one_out, remove_each
from transformer.heads.weight_patterns import monotonicity
from transformer.interventions.experiment import experiment
from transformer.predictions.comparison import head_divergence
from transformer.predictions.quantity import quantity_of
from transformer.training.evaluation import evaluate

CHECKPOINTS = Path(__file__).resolve().parents[2] / "checkpoints"
SENTENCE = "The film was not bad."
START, END, MASK = 1, 2, 3

loaded = cache(lambda name: transformer.load(CHECKPOINTS / name))
by_hand = cache(lambda name: NumpyTransformer(CHECKPOINTS / name))


@pytest.fixture(scope="module")
def translated() -> transformer.Trace:
    return transformer.trace(loaded("en-fr"), SENTENCE, "Le film est mauvais.")


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


# ---- distributions --------------------------------------------------------------------------------------------------


def test_entropy_is_scipys(translated: transformer.Trace) -> None:
    stats = pytest.importorskip("scipy.stats")
    for kind in ("self", "cross"):
        view = translated.attention("decoder", 1, kind)
        expected = stats.entropy(view.weights.astype(np.float64), base=2, axis=-1)
        np.testing.assert_allclose(view.entropy, expected, atol=1e-5)


def test_the_divergence_of_heads_is_scipys(translated: transformer.Trace) -> None:
    """Return the divergence; ``jensenshannon`` returns its square root."""
    distance = pytest.importorskip("scipy.spatial.distance")
    first, second = (translated.attention("decoder", layer, "cross") for layer in (0, 2))
    expected = distance.jensenshannon(first.weights, second.weights, base=2, axis=-1) ** 2  # [head, query]
    np.testing.assert_allclose(head_divergence(first, second), expected.mean(axis=1), atol=1e-5)


def test_the_divergence_of_an_answer_is_that_of_two_runs_by_hand(translated: transformer.Trace) -> None:
    found = experiment(translated, [transformer.ablate_head("decoder", layer=1, kind="cross", head=2)])
    model = by_hand("en-fr")
    logits = []
    for changes in ({}, {"decoder.layers.1.cross_attention.context": _without_head_2}):
        model.changes = changes
        logits.append(model.forward(list(translated.source.ids), list(translated.target.ids))["decoder.logits"])
    model.changes = {}
    for row, (divergence, change) in enumerate(zip(found.kl, found.after - found.before, strict=True)):
        p, q = softmax(logits[0][row]), softmax(logits[1][row])
        assert divergence == pytest.approx(sum(a * math.log(a / b) for a, b in zip(p, q, strict=True)), abs=1e-4)
        word = translated.prediction[row].id
        assert change == pytest.approx(math.log(q[word] / p[word]), abs=1e-4)
    assert found.mean_kl > 1e-4


def _without_head_2(context: np.ndarray) -> np.ndarray:
    return np.stack([rows * (head != 2) for head, rows in enumerate(context)])


def test_kendalls_tau_is_scipys(translated: transformer.Trace) -> None:
    stats = pytest.importorskip("scipy.stats")
    weights = np.concatenate([translated.attention("decoder", layer, "cross").weights for layer in range(3)])
    for found, head in zip(monotonicity(weights), weights, strict=True):
        expected = stats.kendalltau(range(head.shape[0]), head.argmax(axis=-1), variant="b").statistic
        assert found == pytest.approx(0.0 if math.isnan(expected) else expected)


# ---- where an answer comes from -------------------------------------------------------------------------------------


def test_rollout_is_a_sum_over_paths(translated: transformer.Trace) -> None:
    """Abnar & Zuidema 2020, §3, one cell at a time: R(i, j) = Σ_k Ã(i, k) · R below (k, j)."""
    maps = [translated.attention("encoder", layer).weights.astype(np.float64) for layer in range(3)]
    size = maps[0].shape[1]

    def share(layer: int, query: int, token: int) -> float:
        if layer < 0:
            return float(query == token)
        mixed = [0.5 * float(np.mean(maps[layer][:, query, key])) + 0.5 * (query == key) for key in range(size)]
        return sum(mixed[key] * below(layer - 1, key, token) for key in range(size))

    below = cache(share)
    expected = [[below(2, query, token) for token in range(size)] for query in range(size)]
    np.testing.assert_allclose(attention_rollout(translated, "encoder").source, expected, atol=1e-6)


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
    checkpoint, model = loaded("sentiment"), by_hand("sentiment")
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
    checkpoint, model = loaded("sentiment"), by_hand("sentiment")
    trace = transformer.trace(checkpoint, SENTENCE)
    ids, quantity = list(trace.source.ids), quantity_of(trace)
    label = int(trace.values("classifier.logits").argmax())

    def p(rest: list[int]) -> float:
        return float(softmax(model.forward(rest, None)["classifier.logits"])[label])

    removed = remove_each(checkpoint, quantity).source
    for token in range(len(ids)):
        expected = math.log(p(ids)) - math.log(p(ids[:token] + ids[token + 1 :]))
        assert removed[token] == pytest.approx(expected, abs=1e-4)
    words = leave_one_out(checkpoint, SENTENCE)
    for word, contributions in zip(words.words, words.contributions, strict=True):
        expected = p(ids) - p(ids[: word.start] + ids[word.end :])
        assert contributions[label] == pytest.approx(expected, abs=1e-5)


# ---- scores ---------------------------------------------------------------------------------------------------------


def test_accuracy_is_a_count(tmp_path: Path) -> None:
    texts = ["A wonderful film.", "I was bored.", "Not good, not bad.", "The worst day of my life!", "We loved it."]
    labels = [1, 0, 1, 0, 0]
    right = 0
    for text, label in zip(texts, labels, strict=True):
        ids = [START, *loaded("sentiment").tokenizer.encode(text), END]
        right += int(by_hand("sentiment").forward(ids, None)["classifier.logits"].argmax()) == label
    path = tmp_path / "texts.tsv"
    path.write_text("".join(f"{text}\t{label}\n" for text, label in zip(texts, labels, strict=True)), encoding="utf-8")
    assert evaluate(loaded("sentiment"), path)["accuracy"] == pytest.approx(right / 5)
    assert 0 < right < 5, "else a constant would pass, too"


def test_perplexity_is_a_product_of_chances(tmp_path: Path) -> None:
    texts, surprise, n_tokens = ["She reads a book.", "It rained."], 0.0, 0
    for text in texts:
        ids = [START, *loaded("gpt-en").tokenizer.encode(text), END]
        logits = by_hand("gpt-en").forward(None, ids[:-1])["decoder.logits"]
        surprise -= sum(math.log(softmax(row)[id]) for row, id in zip(logits, ids[1:], strict=True))
        n_tokens += len(ids) - 1
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(texts), encoding="utf-8")
    scores = evaluate(loaded("gpt-en"), path)
    assert scores["perplexity_per_word"] == pytest.approx(math.exp(surprise / 6), rel=1e-4)
    assert scores["perplexity_per_token"] == pytest.approx(math.exp(surprise / n_tokens), rel=1e-4)


def test_a_masked_word_counts_when_all_its_pieces_come_back(tmp_path: Path) -> None:
    """One word per sentence, so that there is no choice of the masked word."""
    words, right = ["Yes", "Tomorrow", "Umbrella", "The", "I"], 0
    for word in words:
        ids = loaded("bert-en").tokenizer.encode(word)
        logits = by_hand("bert-en").forward([START, *[MASK] * len(ids), END], None)["encoder.logits"]
        right += list(logits[1:-1].argmax(axis=-1)) == ids
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(words), encoding="utf-8")
    assert evaluate(loaded("bert-en"), path)["masked_accuracy"] == pytest.approx(right / len(words))


def test_bleu_is_sacrebleus(tmp_path: Path) -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    pairs = [("He sleeps.", "Il dort."), ("I am tired.", "Je suis très fatigué."), ("He sleeps.", "Elle dort.")]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    written = [
        transformer.decode(loaded("en-fr"), text, transformer.Beam(2)).text for text in ("He sleeps.", "I am tired.")
    ]
    references = [["Il dort.", "Je suis très fatigué."], ["Elle dort.", None]]
    scores = evaluate(loaded("en-fr"), path, beam=2)
    assert scores["bleu"] == pytest.approx(sacrebleu.corpus_bleu(written, references).score)
    assert scores["chrf"] == pytest.approx(sacrebleu.corpus_chrf(written, references).score)
