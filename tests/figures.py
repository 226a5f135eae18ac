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
            Token(place, ids[word], word.replace("·", " "), word, special=word in ("<s>", "</s>", "<pad>"))
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
        aligned_measures,
        bars,
        beam_tree,
        curves,
        distributions,
        embedding_rows,
        firing_strips,
        gradients,
        heat_maps,
        lens_grid,
        patch_contributions,
        reshaping,
        row_on_picture,
        stream_distance,
        token_boxes,
        units,
        vector_strips,
        vocabulary,
        waterfall,
    )
    from charts.figures.map_strip import map_strip
    from charts.toolkit import style
    from charts.toolkit.axes import Axis
    from charts.toolkit.words import say

    n, numbers = len(tokens), np.random.default_rng(11)
    rows = numbers.normal(size=(n, 16))
    moved = np.zeros(40)
    moved[list(tokens.ids)] = 0.5
    steps = ["embedding", "0 self-attention", "0 feed-forward"]
    share = numbers.dirichlet(np.ones(n))
    return {
        "bars": bars.bars(
            bars.Bars([0.6, 0.2, 0.2], colours=[style.CHOSEN, style.BAR, style.MASKED]),
            rows=Axis(say("names.candidate"), ["·chat", "·<b>", say("decoding.all_others")]),
            across=say("names.next_token_probability"),
            limits=(0, 1),
            legend={say("names.candidate"): style.BAR, say("names.chosen"): style.CHOSEN},
        ),
        "columns": bars.columns(
            [
                bars.Bars(
                    np.where(np.arange(n) < 5, share, np.nan), say("token_position", token="%{x}", place="%{x:d}")
                ),
                bars.Points(share, "%{x}", say("decoding.the_other_token"), style.CATEGORICAL[1]),
            ],
            along=Axis(say("names.key_axis"), tokens.displays),
            up=say("names.weight"),
            limits=(0, 1),
            masked=np.arange(n) >= 5,
        ),
        "small_multiples": bars.small_multiples(
            [
                bars.Panel([bars.Bars(np.ones(16), "γ", signed=True, start=1.0)], "γ", say("add_norm.gamma")),
                bars.Panel([bars.Bars(rows[0], "β", signed=True, start=0.0)], "β", say("add_norm.beta")),
            ],
            along=Axis(say("dimension_axis", n=16)),
        ),
        "distributions": distributions.distributions(
            {style.escape("·<b>"): rows[0], "after": rows[1]},
            place=say("dimension", dimension="%{customdata}"),
            across=say("names.value"),
        ),
        "heat_maps": heat_maps.heat_maps(
            [
                heat_maps.HeatMap(say("add_norm.relative_length"), np.abs(rows[:2, :n]), "%{y}, %{x}", signed=False),
                heat_maps.HeatMap(say("add_norm.direction_cosine"), np.tanh(rows[:2, :n]), "%{y}, %{x}", limit=1.0),
            ],
            rows=Axis(say("names.sub_layer"), steps[1:]),
            columns=Axis(say("names.token"), tokens.displays),
            numbers=10,
        ),
        "embedding_rows": embedding_rows.embedding_rows(rows, tokens=tokens, vocabulary_size=40, followed=1),
        "embedding_window": embedding_rows.embedding_window(
            rows[:4], row_ids=[2, 3, 6, 7], displays=["a", "·<b>", "c", "d"], looked_up=[3]
        ),
        "gradient_rows": gradients.gradient_rows(moved, tokens=tokens),
        "vocabulary_projection": vocabulary.vocabulary_projection(
            numbers.normal(size=(40, 2)), displays=["·<b>"] * 40, tokens=tokens, explained=(0.2, 0.1)
        ),
        "heat_map": heat_maps.heat_map(
            numbers.normal(size=(n, 16)),
            rows=Axis(say("positions.position_axis"), tokens.displays),
            columns=Axis(say("dimension_axis", n=16)),
            hover=heat_maps.token_cell(),
            value=say("names.value"),
            height=300,
            end=(2, say("positions.input_end", n=2)),
        ),
        "weight_rows": heat_maps.weight_rows(
            [share, share[::-1]],
            rows=("before: <b>", "after"),
            columns=tokens.displays,
            below=[str(at) for at in range(len(tokens))],
            value=say("positions.value_axis"),
        ),
        "curves": curves.curves(
            [
                curves.Curve(
                    say("dimension", dimension=0),
                    rows[:, 0],
                    (say("positions.cosine", value="%{y}"),),
                    points=tokens.displays[:2],
                    points_hover=("%{text}",),
                )
            ],
            x=range(n),
            across=say("positions.position_axis_dots"),
            up=say("positions.encoding_value"),
        ),
        "vector_strips": vector_strips.vector_strips(
            [vector_strips.Strip("<b>", rows[0]), vector_strips.Strip("norm", rows[1], normalized=True)],
            spread="std",
            root_mean_square=False,
            numbers="the first 5 numbers",
            all_of_it="all 16 numbers",
        ),
        "units_and_words": units.units_and_words(
            rows[:, :2].T,
            tokens=tokens,
            followed=1,
            units=("unit 5", "unit 9"),
            words=("·<b>", "a"),
            value="hidden value",
        ),
        "activation_curve": activation_curve.activation_curve(rows[0], activation="gelu", token="·<b>"),
        "reshaping": reshaping.reshaping(candidates, temperature=0.5, rule="top-k 2"),
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
        "patch_contributions": patch_contributions.patch_contributions(
            [0.3, -0.2, 0, 0.1], ink=np.zeros((4, 2, 2)), names=["<b>", "b", "c", "d"], of="·<i> class"
        ),
        "row_on_picture": row_on_picture.row_on_picture(
            np.full((2, 2, 2), 0.2),
            picture="data:image/png;base64,",
            names=["·<i>", "$y$"],
            labels=["·<b>", "$y$", "·%{z}", "<s>"],
        ),
        "aligned_measures": aligned_measures.aligned_measures(small_measures(), answer="‘·<b>’"),
        "lens_grid": lens_grid.lens_grid(small_lens(), selected=1),
        "waterfall": waterfall.waterfall(
            [0.5, -0.2], labels=["0 feed-forward", "·<b>"], total=0.7, n_others=3, of="·$y$ − ·%{z}"
        ),
        "stream_distance": stream_distance.stream_distance(
            np.linspace(0.4, 1, 6).reshape(2, 3),
            steps=steps[:2],
            labels=["·<b>", "·$y$ / ·%{z}", "·&amp; (A)"],
            equal=[True] * 3,
        ),
        "map_strip": map_strip([causal_view] * 2, head=1, names=["0", "·<b>"], chosen=1),
        "merge_tree": token_boxes.merge_tree([["·", "<", "b"], ["·<", "b"], ["·<b"]], ranks=[4, 9]),
        "token_lengths": token_boxes.token_lengths({"this": tokens, "other": target}),
    }
