"""A sentence with everything that can break a label, matching small arrays, and every figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import pytest

from charts.toolkit import sheet
from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import Token, TokenSequence

# A repeated word, a special token, HTML, TeX, a template's placeholder, an entity.
WORDS = ("<s>", "·the", "·<b>x</b>", "·$y$", "·%{z}", "·&amp;", "·the")


@pytest.fixture(scope="session", autouse=True)
def every_setting_is_checked() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sheet, "VALIDATE", True)
        yield


def sequence(words: Sequence[str], name: str = "source") -> TokenSequence:
    """Return tokens with ids from 2 in order of first occurrence; a repeated word has the same id."""
    ids = {word: 2 + place for place, word in enumerate(dict.fromkeys(words))}
    return TokenSequence(
        tuple(
            Token(place, ids[word], word.replace("·", " "), word, special=word == "<s>")
            for place, word in enumerate(words)
        ),
        name,
    )


@pytest.fixture(scope="session")
def tokens() -> TokenSequence:
    return sequence(WORDS)


@pytest.fixture(scope="session")
def target() -> TokenSequence:
    return sequence(("<s>", "·le", "·chat", "·<i>", "."), "target")


@pytest.fixture
def numbers() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture(scope="session")
def causal_view(target: TokenSequence) -> AttentionView:
    """Return three heads over five tokens with a causal mask."""
    scores = np.random.default_rng(3).normal(size=(3, 5, 5)).astype(np.float32)
    allowed = np.tril(np.ones((5, 5), dtype=bool))
    exponentials = np.where(allowed, np.exp(scores), 0)
    weights = (exponentials / exponentials.sum(axis=-1, keepdims=True)).astype(np.float32)
    return AttentionView(
        "decoder.layers.1.self_attention", "decoder", 1, "self", weights, allowed, scores, target, target
    )


@pytest.fixture(scope="session")
def candidates() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "piece": ["·chat", "·<b>", "·chien", "."],
            "own": [0.4, 0.3, 0.2, 0.1],
            "logit": [3.0, 2.0, 1.0, -1.0],
            "scaled": [6.0, 4.0, 2.0, -2.0],
            "probability": [0.6, 0.2, 0.1, 0.05],
            "kept": [True, True, False, False],
            "final": [0.75, 0.25, 0.0, 0.0],
            "chosen": [False, True, False, False],
        }
    )


def small_lens(**changed):
    """Return a lens of three steps and four positions, decided at steps 0, 1, 2 and never."""
    from transformer.predictions.lens import Lens

    ids = np.array(
        [[[5, 6], [6, 5], [7, 5], [6, 7]], [[5, 7], [5, 6], [7, 6], [7, 5]], [[5, 6], [5, 7], [5, 7], [7, 6]]]
    )
    first = np.array([[0.9, 0.5, 0.4, 0.6], [0.8, 0.6, 0.5, 0.6], [0.99, 0.7, 0.8, 0.9]])
    values = {
        "stack": "decoder",
        "steps": ("embedding", "layer 0", "layer 1"),
        "read": ("<s>", "·the", "·<b>x</b>", "·$y$"),
        "ids": ids,
        "probabilities": np.stack([first, (1 - first) / 2], axis=-1),
        "followed": np.array([5, 5, 5, 5]),
        "probability": np.where(ids[:, :, 0] == 5, first, (1 - first) / 2),
        "rank": np.where(ids[:, :, 0] == 5, 1, 20),
        "divergence": np.array([[0.2, 1.5, 3.0, 2.0], [0.1, 0.4, 2.0, 0.3], [0.0, 0.0, 0.0, 0.0]]),
        "entropy": np.ones((3, 4)),
        "decided": np.array([0, 1, 2, -1]),
        "final_norm": True,
        "of_classes": False,
        "pieces": {5: "·<b>", 6: "·$y$", 7: "·incomprehensible"},
    }
    return Lens(**{**values, **changed})


def small_measures(*, shares: bool = True):
    """Return measures of three tokens, one of which cannot be left out: a row of shares, two signed rows."""
    from transformer.attribution.attention_trust import Aligned, TokenMeasure

    tokens = sequence(("<s>", "·<b>x</b>", "·$y$", "·%{z}"))
    rows = (
        (TokenMeasure("head", np.array([0.7, 0.2, 0.1]), False, 0.5),) if shares else (),
        (TokenMeasure("integrated_gradients", np.array([10.0, -20.0, 0.001]), True, -0.25),),
        (TokenMeasure("leave_one_out", np.array([0.5, -0.25, np.nan]), True, np.nan),),
    )
    return Aligned(tokens, (0, 1, 3), sum(rows, ()))


def small_tree(*, n_steps: int = 2):
    """Return a search of width 2 in which <b> wins after being second and $y$ is abandoned after leading."""
    from transformer.predictions.hypothesis_tree import BeamNode, BeamTree
    from transformer.runs.decoding import Hypothesis
    from transformer.runs.decoding_strategies import Beam

    rows = [  # step, parent, id, display, log p, total, rank, fate
        (1, -1, 5, "·$y$", -0.7, -0.7, 1, "kept"),
        (1, -1, 6, "·<b>", -0.9, -0.9, 2, "kept"),
        (1, -1, 7, "·%{z}", -2.0, -2.0, 3, "pruned"),
        (2, 0, 2, "</s>", -3.0, -3.7, 3, "finished"),
        (2, 0, 7, "·%{z}", -1.5, -2.2, 2, "open"),
        (2, 1, 2, "</s>", -0.1, -1.0, 1, "finished"),
        (2, 1, 8, "·incomprehensible", -1.0, -1.9, 1, "open"),
        (2, 1, 7, "·%{z}", -4.0, -4.9, 3, "pruned"),
        (2, 1, 5, "·$y$", -4.5, -5.4, 4, "pruned"),
    ]
    nodes = tuple(
        BeamNode(index, step, parent, id, display, log_p, total, total, rank, fate)
        for index, (step, parent, id, display, log_p, total, rank, fate) in enumerate(rows)
        if step <= n_steps
    )
    found = (Hypothesis((6, 2), "<b>", -1.0, -1.0, True), Hypothesis((5, 2), "$y$", -3.7, -3.7, True))
    return BeamTree(nodes, found, Beam(2, length_penalty=0.0))


@pytest.fixture(scope="session")
def figures(tokens, target, causal_view, candidates) -> dict:
    return every_figure(tokens, target, causal_view, candidates)


def every_figure(tokens, target, causal_view, candidates) -> dict:
    """Return every public figure, drawn once, by name."""
    from charts.figures import (
        activation_curve,
        beam_tree,
        decoding_figures,
        edit_effects,
        embedding_rows,
        firing_strips,
        gradients,
        habit_bars,
        norm_figures,
        residual_figures,
        token_boxes,
        units,
        vector_strips,
        vocabulary,
    )
    from charts.figures.map_strip import map_strip
    from transformer.predictions.lens import WordProbabilities
    from views.attention import attention_row_figures, trust_figure
    from views.checkpoint import parameter_shares_figure
    from views.compare import stream_distance_figure
    from views.lens import attribution_figures, lens_figures
    from views.positions import attention_change_figure, distance_figures, encoding_figures

    n, numbers = len(tokens), np.random.default_rng(11)
    rows = numbers.normal(size=(n, 16))
    moved = np.zeros(40)
    moved[list(tokens.ids)] = 0.5
    steps = ["embedding", "0 self-attention", "0 feed-forward"]
    share = numbers.dirichlet(np.ones(n))
    before_and_after = pd.DataFrame(
        {"piece": ["·<b>", "·$y$"], "before": [0.7, 0.1], "after": [0.2, 0.6], "chosen": [True, False]}
    )
    return {
        "candidates_before_and_after": edit_effects.candidates_before_and_after(before_and_after),
        "divergence_per_token": edit_effects.divergence_per_token(share, labels=tokens.displays),
        "embedding_rows": embedding_rows.embedding_rows(rows, tokens=tokens, vocabulary_size=40, followed=1),
        "embedding_window": embedding_rows.embedding_window(
            rows[:4], row_ids=[2, 3, 6, 7], displays=["a", "·<b>", "c", "d"], looked_up=[3]
        ),
        "gradient_rows": gradients.gradient_rows(moved, tokens=tokens),
        "gradient_by_block": gradients.gradient_by_block(
            [[0.5, np.nan], [np.nan, 0.25]], kinds=["<b>x", "outside"], places=["encoder 0", "·<b>"]
        ),
        "vocabulary_projection": vocabulary.vocabulary_projection(
            numbers.normal(size=(40, 2)), displays=["·<b>"] * 40, tokens=tokens, explained=(0.2, 0.1)
        ),
        "nearest_neighbours": vocabulary.nearest_neighbours(["·<i>", "·cat"], similarities=[0.9, 0.4], of="·<b>"),
        "attention_change": attention_change_figure.attention_change(
            share,
            after=share[::-1],
            tokens=tokens,
            rows=("before: <b>", "after"),
            bar="attention weight",
            positions=[str(at) for at in range(len(tokens))],
        ),
        "encoding_heatmap": encoding_figures.encoding_heatmap(numbers.normal(size=(12, 16)), tokens=tokens),
        "encoding_waves": encoding_figures.encoding_waves(
            numbers.normal(size=(12, 16)), dimensions=[0, 5], tokens=tokens
        ),
        "position_similarity": encoding_figures.position_similarity(np.eye(5)),
        "embedding_sum": encoding_figures.embedding_sum(rows, position=rows, total=2 * rows, tokens=tokens),
        "relative_bias": distance_figures.relative_bias(numbers.normal(size=(3, 5)), distances=range(-2, 3)),
        "rotary_angles": distance_figures.rotary_angles(numbers.normal(size=(6, 4)), pairs=[0, 3]),
        "parameter_shares": parameter_shares_figure.parameter_shares([60.0, 40.0], names=["·<b>", "norm"]),
        "norm_statistics": norm_figures.norm_statistics(
            np.ones(n), std_before=np.ones(n), mean_after=np.zeros(n), std_after=np.ones(n), tokens=tokens
        ),
        "gain_and_bias": norm_figures.gain_and_bias(np.ones(16), bias=rows[0]),
        "position_distribution": norm_figures.position_distribution(rows[0], after=rows[1], token="·<b>"),
        "vector_strips": vector_strips.vector_strips(
            [vector_strips.Strip("<b>", rows[0]), vector_strips.Strip("norm", rows[1], normalized=True)],
            spread="std",
            root_mean_square=False,
            numbers="the first 5 numbers",
            all_of_it="all 16 numbers",
        ),
        "residual_growth": residual_figures.residual_growth(
            np.abs(rows[:3, :n]), steps=steps, tokens=tokens, highlighted=2
        ),
        "sublayer_contribution": residual_figures.sublayer_contribution(
            np.abs(rows[:2, :n]), cosine=np.tanh(rows[:2, :n]), sublayers=steps[1:], tokens=tokens
        ),
        "hidden_heatmap": units.hidden_heatmap(rows, tokens=tokens),
        "silent_units": units.silent_units(share[None], tokens=tokens, layers=["layer <0>"]),
        "strongest_bars": units.strongest_bars(rows[0], token="·<b>", top=5),
        "units_and_words": units.units_and_words(
            rows[:, :2].T,
            tokens=tokens,
            followed=1,
            units=("unit 5", "unit 9"),
            words=("·<b>", "a"),
            value="hidden value",
        ),
        "unit_firing": units.unit_firing(rows[:, 0], tokens=tokens, followed=1),
        "probabilities_changed": units.probabilities_changed(
            [0.3, 0.7], after=[0.4, 0.6], names=["<b>", "·b"], axis="p"
        ),
        "unit_promotes": units.unit_promotes([0.5, 0.2], words=["·<b>", "a"], axis="logit"),
        "unit_writes": units.unit_writes(["·<b>", "a"], effects=[0.5, -1.0], unit=3),
        "activation_curve": activation_curve.activation_curve(rows[0], activation="gelu", token="·<b>"),
        "candidate_bars": decoding_figures.candidate_bars(candidates, rest=0.05),
        "reshaping": decoding_figures.reshaping(candidates, temperature=0.5, rule="top-k 2"),
        "firing_strips": firing_strips.firing_strips(
            [share, -share[:2] / 2],
            tokens=[tokens, TokenSequence(tokens.tokens[:2])],
            places=[1, 0],
            marked=[0, None],
            rows=["·<b>", "$y$"],
            what="hidden value",
            title="token",
            signed=True,
        ),
        "search_tree": beam_tree.search_tree(small_tree()),
        "alignment_heatmap": decoding_figures.alignment_heatmap(
            np.eye(2), target=["<b>x", "$y$"], source=["·<i>", "%{z}"], best=[0, 1]
        ),
        "running_log_probability": decoding_figures.running_log_probability(
            {"greedy": [-0.5, -1.0], "<b>": [-0.1]}, tokens={"greedy": ["·<i>", "·$y$"], "<b>": ["·<b>"]}
        ),
        "answer_confidence": decoding_figures.answer_confidence(share, tokens=tokens, runner_up=share / 2, current=1),
        "step_attention": decoding_figures.step_attention(share, tokens=tokens, allowed=np.arange(n) < 5),
        "head_contributions": attention_row_figures.head_contributions(
            rows[:3], bias=rows[3], output=rows[:4].sum(axis=0), head=1
        ),
        "word_contributions": decoding_figures.word_contributions(
            [0.3, -0.2], words=["<b>good", "bad"], of="·<i> class"
        ),
        "patch_contributions": decoding_figures.patch_contributions(
            [0.3, -0.2, 0, 0.1], ink=np.zeros((4, 2, 2)), names=["<b>", "b", "c", "d"], of="·<i> class"
        ),
        "row_on_picture": attention_row_figures.row_on_picture(
            np.full((2, 2, 2), 0.2),
            picture="data:image/png;base64,",
            names=["·<i>", "$y$"],
            labels=["·<b>", "$y$", "·%{z}", "<s>"],
        ),
        "score_pipeline": attention_row_figures.score_pipeline(causal_view, head=1, row=2),
        "dot_product": attention_row_figures.dot_product(rows[0], key=rows[1], query_token="·<b>", key_token="·<i>"),
        "aligned_measures": trust_figure.aligned_measures(small_measures(), answer="‘·<b>’"),
        "value_mix": attention_row_figures.value_mix(share, values=rows, tokens=tokens, shown=3),
        "habit_bars": habit_bars.habit_bars(share[:2], chances=share[:2], names=["·<b>", "$y$"]),
        "lens_grid": lens_figures.lens_grid(small_lens(), selected=1),
        "attribution_waterfall": attribution_figures.attribution_waterfall(
            [0.5, -0.2], labels=["0 feed-forward", "·<b>"], total=0.7, n_others=3, of="·$y$ − ·%{z}"
        ),
        "measured_effects": attribution_figures.measured_effects(
            [0.5, -0.2],
            zero=[0.3, 0.1],
            mean=[np.nan, 0.1],
            patched=[0, 0.1],
            labels=["0 feed-forward", "·<b>"],
            of="·$y$",
        ),
        "word_probabilities": lens_figures.word_probabilities(
            WordProbabilities(("embedding", "layer 0"), ("·<b>", "·$y$", "·%{z}"), (5, 6, 7), np.full((3, 2), 0.3))
        ),
        "stream_distance": stream_distance_figure.stream_distance(
            np.linspace(0.4, 1, 6).reshape(2, 3), steps=steps[:2], labels=["·<b>", "·$y$ / ·%{z}", "·&amp; (A)"]
        ),
        "map_strip": map_strip([causal_view] * 2, head=1, names=["0", "·<b>"], chosen=1),
        "merge_tree": token_boxes.merge_tree([["·", "<", "b"], ["·<", "b"], ["·<b"]], ranks=[4, 9]),
        "token_lengths": token_boxes.token_lengths({"this": tokens, "other": target}),
    }
