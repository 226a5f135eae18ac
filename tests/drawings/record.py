"""Write tests/drawings/payloads anew: small, fixed data for the drawings' tests in node.

    python -m tests.drawings.record

Afterwards ``UPDATE=1 node --test tests/drawings/`` writes the marks that belong to them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import transformer
from charts.canvas.attention_heads import HeadWords, attention_heads
from charts.canvas.attention_maps import attention_lines, attention_map, attention_overview, mask_editor
from charts.canvas.figure import CanvasFigure
from charts.canvas.living_picture_canvas import living_picture_canvas
from charts.canvas.value_map import value_map
from charts.canvas.written_steps import StepBars, written_steps
from tests.conftest import ROOT
from tests.figures import sequence
from transformer.predictions.living_picture_numbers import living_picture_numbers
from transformer.runs.attention_view import AttentionView

FOLDER = Path(__file__).parent / "payloads"
WORDS = ["<s>", "·The", "·old", "·man", "."]


def view(
    query: list[str],
    key: list[str],
    *,
    layer: int = 0,
    n_heads: int = 3,
    kind: str = "self",
    causal: bool = False,
) -> AttentionView:
    """Return attention in which head h attends about h tokens back, more sharply in deeper layers."""
    row, column = np.arange(len(query))[:, None], np.arange(len(key))[None, :]
    heads = np.arange(n_heads)[:, None, None]
    scores = -(0.25 + 0.25 * layer) * np.abs(row - column - heads + 1) + 1.5 * np.cos(row * (heads + 1) + 2 * column)
    allowed = (column <= row) if causal else np.ones((len(query), len(key)), dtype=bool)
    powers = np.exp(scores) * allowed
    return AttentionView(
        name=f"decoder.layers.{layer}.{kind}_attention",
        stack="decoder",
        layer=layer,
        kind=kind,
        weights=(powers / powers.sum(axis=-1, keepdims=True)).astype(np.float32),
        allowed=allowed,
        scores=scores.astype(np.float32),
        query=sequence(query, "target"),
        key=sequence(key),
    )


def figures() -> dict[str, CanvasFigure]:
    """Return every drawing of the tests, by name."""
    views = [view(WORDS, WORDS, layer=layer, causal=True) for layer in range(2)]
    head = attention_map(views[1], head=2, selected=(3, 1), follow_pointer=True)
    own = views[1].allowed.copy()
    own[4, 0] = False
    signed = value_map(
        np.array([[0.5, -2.0], [0.0, 1.25]]),
        row_labels=["x", "y"],
        column_labels=["first column", "second column"],
        breaks=[1],
        crossed=[(0, 0)],
        outlined=np.array([[False, True], [False, True]]),
    )
    count = 60
    dense = value_map(
        np.add.outer(np.arange(count), np.arange(count)) / (2 * count),
        row_labels=[f"·w{k}" for k in range(count)],
        column_labels=[f"·w{k}" for k in range(count)],
        scale="sequential",
        allowed=np.tri(count, dtype=bool),
        height=80,
    )
    names = {
        (layer, one): HeadWords("short", f"Role of {layer}.{one}", "It attends.")
        for layer in (0, 1)
        for one in range(3)
    }
    bars = [
        StepBars(
            said=("The next token is ", "A", "."),
            candidates=("·A", "·B"),
            probabilities=(0.75, 0.125),
            rest=0.125,
            chosen=step,
            weights=np.array([0.25, 0.75]),
            allowed=np.array([True, True]),
        )
        for step in (0, 1)
    ]
    return {
        "map": head,
        "mask": mask_editor(views[1], head=2, own=own),
        "signed": signed,
        "dense": dense,
        "lines": attention_lines(views[1], heads=[0, 2], selected_token=2),
        "heads": attention_heads(views, words=names, clear=[(1, 2)], selected=(0, 1), marked={(0, 1): (3, 2)}),
        "overview": attention_overview([views, views[:1]]).with_metadata(selected=["decoder", "self", 1, 0]),
        "steps": written_steps(bars, tokens=sequence(["·A", "·B"]), key=sequence(["<s>", "·A"]), of="layer 0, head 0"),
        "living_picture": living_picture(),
    }


def living_picture() -> CanvasFigure:
    """Return the living picture of a short translation, with the numbers of one layer."""
    trace = transformer.trace(transformer.load(ROOT / "checkpoints" / "en-fr"), "The old man.")
    numbers = living_picture_numbers(trace, inside=[("decoder", 1)])
    return living_picture_canvas(numbers, begin={"stack": "decoder", "layer": 1})


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, figure in figures().items():
        (FOLDER / f"{name}.glas").write_bytes(figure.packed())
