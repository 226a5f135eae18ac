"""Payloads of the canvas: precise, small, labelled, masked, and refused if inconsistent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import transformer
from charts.canvas import attention_maps
from charts.canvas import living_picture_canvas as module
from charts.canvas.attention_heads import HeadWords, attention_heads
from charts.canvas.attention_maps import (
    KEY_TITLE,
    QUERY_TITLE,
    SHIFTED_TITLE,
    attention_grid,
    attention_lines,
    attention_map,
    attention_overview,
)
from charts.canvas.figure import CanvasFigure
from charts.canvas.living_picture_canvas import living_picture_canvas
from charts.canvas.value_map import value_map
from charts.canvas.written_steps import StepBars, written_steps
from charts.toolkit.payload_bytes import pack, unpack
from tests.drawings.record import view
from tests.figures import sequence
from transformer.predictions.living_picture_numbers import LivingPicture, living_picture_numbers
from transformer.text.tokens import TokenSequence

QUERY = ["<s>", "·le", "·chat", "</s>"]
KEY = ["·the", "·cat", "·the", ".", "</s>"]


def read(figure: CanvasFigure) -> tuple[dict, dict[str, np.ndarray]]:
    """Return what the browser reads."""
    return unpack(figure.packed())


def words(count: int) -> list[str]:
    return [f"·w{i}" for i in range(count)]


def mask_of(bits: np.ndarray, rows: int, columns: int) -> np.ndarray:
    return np.unpackbits(bits, count=rows * columns, bitorder="little").reshape(rows, columns).astype(bool)


def test_map_carries_the_very_numbers_of_the_model():
    seen = view(QUERY, KEY)
    metadata, arrays = read(attention_map(seen, head=2))
    assert arrays["values"].dtype == np.float32
    np.testing.assert_array_equal(arrays["values"], seen.weights[2])
    assert metadata["kind"] == "map"
    assert (metadata["scale"], metadata["limit"]) == ("sequential", 1.0)


def test_map_carries_labels_titles_and_special_tokens():
    metadata, _ = read(attention_map(view(QUERY, KEY), head=0))
    assert metadata["rows"] == QUERY
    assert metadata["columns"] == ["·the", "·cat", "·the₂", ".", "</s>"]  # repeated words stay separate
    assert (metadata["row_title"], metadata["column_title"]) == (QUERY_TITLE, KEY_TITLE)
    assert metadata["special_rows"] == [0, 3]
    assert metadata["special_columns"] == [4]


def test_stretched_map_ends_at_its_largest_weight_and_says_so():
    seen = view(QUERY, KEY)
    metadata, _ = read(attention_map(seen, head=1, stretch=True))
    assert metadata["limit"] == pytest.approx(float(seen.weights[1].max()))
    assert metadata["limit"] < 1
    assert "stretched" in metadata["legend"]
    assert "fixed" in read(attention_map(seen, head=1))[0]["legend"]


def test_masked_cells_travel_as_a_mask_not_as_a_low_value():
    seen = view(words(5), words(5), causal=True)
    _, arrays = read(attention_map(seen, head=0))
    np.testing.assert_array_equal(mask_of(arrays["allowed"], 5, 5), np.tri(5, dtype=bool))


def test_masked_scores_of_minus_infinity_are_no_hindrance():
    values = np.array([[1.5, -np.inf], [-0.5, 0.25]])
    figure = value_map(
        values,
        row_labels=["a", "b"],
        column_labels=["c", "d"],
        row_title="row",
        column_title="column",
        scale="diverging",
        allowed=np.array([[True, False], [True, True]]),
    )
    metadata, arrays = read(figure)
    assert metadata["limit"] == 1.5
    np.testing.assert_array_equal(arrays["values"], np.array([[1.5, 0.0], [-0.5, 0.25]], dtype=np.float32))


def test_lines_are_exact_to_half_a_step_of_sixteen_bits():
    seen = view(words(17), words(23), n_heads=4)
    metadata, arrays = read(attention_lines(seen, heads=[1, 3], selected_token=16))
    assert arrays["weights"].dtype == np.uint16
    assert np.abs(arrays["weights"] / 65535 - seen.weights).max() <= 1 / 131070 + 1e-9
    assert (metadata["heads"], metadata["selected"], metadata["same_tokens"]) == ([1, 3], 16, True)


def test_grid_holds_every_digit_and_many_heads_half_a_step_of_eight_bits(monkeypatch):
    views = [view(QUERY, KEY, layer=layer) for layer in range(2)]
    captions = {(1, 2): "previous token"}
    metadata, arrays = read(attention_grid(views, selected=(1, 0), captions=captions))
    monkeypatch.setattr(attention_maps, "MAX_EXACT", 10)
    rounded = read(attention_grid(views))[1]["weights"]
    assert rounded.dtype == np.uint8
    for weights, bound in ((arrays["weights"], 0), (rounded / 255, 1 / 510 + 1e-9)):
        for layer, sent in enumerate(weights.reshape(2, 3, len(QUERY), len(KEY))):
            assert np.abs(sent - np.float32(views[layer].weights)).max() <= bound
    assert metadata["selected"] == [1, 0]
    assert [(tile["layer"], tile["head"]) for tile in metadata["tiles"]] == [(i, h) for i in range(2) for h in range(3)]
    assert metadata["tiles"][5]["caption"] == "previous token"
    assert metadata["sorted"] is False


def test_a_stretched_grid_ends_each_map_at_its_own_largest_weight(monkeypatch):
    monkeypatch.setattr(attention_maps, "MAX_EXACT", 10)
    seen = view(QUERY, KEY)
    fixed, _ = read(attention_grid([seen]))
    assert not fixed["stretched"] and all("limit" not in tile for tile in fixed["tiles"])
    metadata, arrays = read(attention_grid([seen], stretch=True))
    assert metadata["stretched"]
    for tile, sent in zip(metadata["tiles"], arrays["weights"], strict=True):
        weights = np.where(seen.allowed, seen.weights[tile["head"]], 0)
        assert tile["limit"] == pytest.approx(weights.max()) and sent.max() == 255
        assert np.abs(sent / 255 * tile["limit"] - weights).max() <= tile["limit"] / 510 + 1e-6


def test_grid_sends_a_mask_that_layers_share_only_once():
    same = [view(words(6), words(6), layer=layer, causal=True) for layer in range(3)]
    metadata, arrays = read(attention_grid(same))
    assert arrays["masks"].shape[0] == 1
    mixed = [*same[:2], view(words(6), words(6), layer=2, causal=False)]
    metadata, arrays = read(attention_grid(mixed))
    assert [tile["mask"] for tile in metadata["tiles"]] == [0] * 6 + [1] * 3
    assert mask_of(arrays["masks"][1], 6, 6).all()


@pytest.mark.parametrize(
    ("layers", "heads", "tokens", "limit"), [(6, 8, 32, 200_000), (12, 12, 64, 600_000)], ids=["6x8x32", "12x12x64"]
)
def test_all_heads_fit_into_little_room(layers, heads, tokens, limit):
    views = [view(words(tokens), words(tokens), layer=i, n_heads=heads) for i in range(layers)]
    assert len(attention_grid(views).packed()) <= limit


def test_a_payload_reads_the_same_deflated_or_not():
    small, large = np.arange(6, dtype=np.uint16), np.arange(60_000, dtype=np.float32).reshape(3, -1)
    payload = pack({"kind": "test"}, {"small": small, "large": large})
    assert len(payload) < large.nbytes
    _, arrays = unpack(payload)
    np.testing.assert_array_equal(arrays["small"], small)
    np.testing.assert_array_equal(arrays["large"], large)


def heads_figure(views, **more):
    words = {
        (v.layer, h): HeadWords(f"s{h}", f"title {v.layer}.{h}", "It does.") for v in views for h in range(v.n_heads)
    }
    return attention_heads(views, **{"selected": (0, 1), "words": words, **more})


def test_heads_are_a_grid_with_words_for_every_one_and_labels_for_those_with_a_job():
    views = [view(KEY, KEY, layer=layer, causal=True) for layer in range(2)]
    metadata, arrays = read(heads_figure(views, clear=[(1, 2), (0, 1)], selected=(0, 0)))
    _grid, alone = read(attention_grid(views))
    np.testing.assert_array_equal(arrays["weights"], alone["weights"])
    assert metadata["kind"] == "heads"
    assert metadata["selected"] == [0, 0]
    for tile in metadata["tiles"]:
        place = tile["layer"], tile["head"]
        assert tile["title"] == "title {}.{}".format(*place)
        assert tile["caption"] == (f"s{place[1]}" if place in ((1, 2), (0, 1)) else "")
    shifted = [f"·p{index}" for index in range(len(KEY))]
    metadata, _ = read(heads_figure(views, shifted_labels=shifted))
    assert (metadata["rows"], metadata["row_title"], metadata["phrase"][0]) == (shifted, SHIFTED_TITLE, "predicting ")
    with pytest.raises(ValueError, match=r"selected"):
        heads_figure(views, selected=(7, 0))
    with pytest.raises(ValueError, match=r"words: there is nothing for \(0, 0\)"):
        heads_figure(views, words={})


def test_a_notebook_names_heads_and_selects_one() -> None:
    views = [view(KEY, KEY, layer=layer, causal=True) for layer in range(2)]
    metadata, _ = read(attention_grid(views, captions={(0, 1): "prev"}, clear=[(0, 1)]))
    assert [tile["caption"] for tile in metadata["tiles"] if tile.get("clear")] == ["prev"]
    place = ("decoder", "self", 1, 2)
    metadata, _ = read(attention_overview([views], captions=[{(0, 1): "prev"}], selected=place))
    assert metadata["selected"] == list(place)
    assert [tile["caption"] for tile in metadata["parts"][0]["tiles"] if tile["caption"]] == ["prev"]


def test_an_overview_holds_the_grid_of_every_kind() -> None:
    groups = [
        [view(KEY, KEY, layer=layer, causal=True) for layer in range(2)],
        [view(QUERY, KEY, kind="cross")],
    ]
    metadata, arrays = read(attention_overview(groups))
    assert metadata["title"] == "all 9 heads"
    for index, (part, views) in enumerate(zip(metadata["parts"], groups, strict=True)):
        grid, alone = read(attention_grid(views))
        assert [(tile["layer"], tile["head"]) for tile in part["tiles"]] == [
            (tile["layer"], tile["head"]) for tile in grid["tiles"]
        ]
        assert (part["rows"], part["columns"]) == (grid["rows"], grid["columns"])
        np.testing.assert_array_equal(arrays[f"weights{index}"], alone["weights"])
        np.testing.assert_array_equal(arrays[f"masks{index}"], alone["masks"])
    assert [(part["stack"], part["attention"]) for part in metadata["parts"]] == [
        ("decoder", "self"),
        ("decoder", "cross"),
    ]


SEEN = view(QUERY, KEY)
VALUES = np.array([[1.0, -2.0], [0.0, 0.5]])
LABELS = {"row_labels": "ab", "column_labels": "cd", "scale": "diverging"}
REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a head that is not there": (lambda: attention_map(SEEN, head=3), "choose 0 to 2"),
    "a cell that is not there": (lambda: attention_map(SEEN, head=0, selected=(4, 0)), r"selected is \(4, 0\)"),
    "rows without a label": (lambda: attention_map(SEEN, head=0, shifted_labels=["·le"]), "1 row labels for 4"),
    "a row that is not there": (lambda: attention_map(SEEN, head=0, chosen_row=99), "chosen_row is 99"),
    "an unknown scale": (lambda: value_map(VALUES, **{**LABELS, "scale": "rainbow"}), "rainbow"),
    "a signed value without a sign": (lambda: value_map(VALUES, **{**LABELS, "scale": "sequential"}), "diverging"),
    "a value beyond the scale": (lambda: value_map(VALUES, **LABELS, limit=1.0), "reaches 2"),
    "a mask of another shape": (lambda: value_map(VALUES, **LABELS, allowed=np.ones((1, 2), dtype=bool)), r"\(1, 2\)"),
    "no table": (lambda: value_map(np.zeros(3), **LABELS), r"\(3,\)"),
    "weights above 1": (lambda: attention_map(replace(SEEN, weights=SEEN.weights * 2), head=0), "between 0 and 1"),
    "weights above 1 in a grid": (lambda: attention_grid([replace(SEEN, weights=SEEN.weights * 2)]), "between 0 and 1"),
    "weights that are not finite": (lambda: attention_lines(replace(SEEN, weights=SEEN.weights * np.nan)), "finite"),
    "a caption of no head": (lambda: attention_grid([SEEN], captions={(7, 0): "sink"}), r"\(7, 0\)"),
    "a head twice": (lambda: attention_grid([SEEN], order=[(0, 0), (0, 0)]), "twice"),
    "no views": (lambda: attention_grid([]), "no views"),
    "layers of other tokens": (lambda: attention_grid([SEEN, view(KEY, QUERY, layer=1)]), "different tokens"),
    "a token that is not there": (lambda: attention_lines(SEEN, selected_token=4), "0 to 3"),
    "no kinds of attention": (lambda: attention_overview([]), "no views"),
    "no such head": (lambda: attention_overview([[view(KEY, KEY)]], selected=("decoder", "cross", 0, 0)), "selected"),
    "other bytes": (lambda: unpack(b"PNG\x00"), "GLAS"),
    "an array of another kind": (lambda: pack({}, {"values": np.zeros(2)}), "float64"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_drawing_is_refused(name: str) -> None:
    draw, word = REFUSED[name]
    with pytest.raises(ValueError, match=word):
        draw()


# ---- living picture --------------------------------------------------------------------------------------------------

SENTENCE = "The old man told us a story."


@pytest.fixture(scope="module", params=["translator", "gpt", "bert", "sentiment"])
def picture(request: pytest.FixtureRequest, tiny_checkpoint: Callable) -> LivingPicture:
    trace = transformer.trace(tiny_checkpoint(request.param), SENTENCE)
    return living_picture_numbers(trace, inside=[(stack, 0) for stack in trace.stacks])


def test_very_many_weights_are_rounded_and_said_to_be(picture: LivingPicture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_EXACT", 3)
    metadata, arrays = unpack(living_picture_canvas(picture).packed())
    for attention, described in zip(picture.attentions, metadata["attentions"], strict=True):
        sent = arrays[f"{attention.stack}.{attention.kind}.weights"]
        assert sent.dtype == np.uint16 and not described["exact"]
        assert np.abs(sent / 65535 - attention.weights).max() <= 0.5 / 65535 + 1e-9


# ---- the steps of a generated text -----------------------------------------------------------------------------------


def bars(n_keys: int, *, seed: int = 0, count: int = 10) -> StepBars:
    random = np.random.default_rng(seed)
    shares = np.sort(random.dirichlet(np.ones(count + 1)).astype(np.float32))[::-1]
    weights = random.dirichlet(np.ones(n_keys)).astype(np.float32)
    return StepBars(
        said=("After x comes ", f"·w{seed}", "."),
        candidates=tuple(f"·c{place}" for place in range(count)),
        probabilities=tuple(map(float, shares[:count])),
        rest=float(shares[count]),
        chosen=seed % count,
        weights=weights,
        allowed=np.arange(n_keys) < n_keys - 1,
    )


def steps_figure(steps: list[StepBars], tokens: TokenSequence, key: TokenSequence, **more: object) -> CanvasFigure:
    return written_steps(steps, tokens=tokens, key=key, of="layer 0, head 1", **more)


def test_probabilities_are_exact_and_weights_off_by_half_a_step_at_most(target: TokenSequence) -> None:
    steps = [bars(row + 1, seed=row, count=10 - row) for row in range(len(target))]
    metadata, arrays = unpack(steps_figure(steps, target, target, before=target[:1], n_given=2, begin=(3, 4)).packed())
    for row, step in enumerate(steps):
        count = len(step.candidates)
        assert (arrays["probabilities"][row, :count] == np.float32(step.probabilities)).all()
        assert arrays["rest"][row] == np.float32(step.rest)
        assert np.abs(arrays["weights"][row, : row + 1] / 65535 - step.weights).max() <= 0.5 / 65535 + 1e-9
    allowed = np.unpackbits(arrays["allowed"], bitorder="little")[:25].reshape(5, 5)
    assert (allowed == np.tri(5, k=-1)).all(), "neither what is masked nor what is not there yet"
    assert metadata["counts"] == [1, 2, 3, 4, 5] and metadata["chosen"] == [0, 1, 2, 3, 4]
    assert metadata["candidates"][4] == [f"·c{place}" for place in range(6)]
    assert metadata["columns"] == list(target.labels) and metadata["begin"] == [3, 4]
    assert [token["given"] for token in metadata["tokens"]] == [True, True, False, False, False]
    assert metadata["tokens"][3] == {"text": "·<i>", "special": False, "given": False}
    assert metadata["before"] == [{"text": "<s>", "special": True}]


def test_a_sentence_takes_at_most_30_kb() -> None:
    words = sequence([f"·word{place}" for place in range(24)])
    assert len(steps_figure([bars(24, seed=row) for row in range(24)], words, words).packed()) < 30_000


@pytest.mark.parametrize(
    "change, says",
    [
        ({"probabilities": (2.0,) + (0.0,) * 9}, "within 0…1"),
        ({"rest": float("nan")}, "within 0…1"),
        ({"weights": np.array([-0.5, 1, 0, 0, 0])}, "within 0…1"),
        ({"chosen": 10}, "candidate 10"),
        ({"probabilities": (0.5,)}, "10 candidates, but 1"),
        ({"weights": np.zeros(6), "allowed": np.ones(6)}, "5 keys"),
    ],
)
def test_what_does_not_fit_is_refused(target: TokenSequence, change: dict, says: str) -> None:
    steps = [bars(5, seed=row) for row in range(5)]
    with pytest.raises(ValueError, match=says):
        steps_figure([replace(steps[0], **change), *steps[1:]], target, target)
    with pytest.raises(ValueError, match="4 steps and 5 tokens"):
        steps_figure(steps[1:], target, target)
