"""A small app that shows every figure of the attention canvas, for tests/browser/test_canvas.py.

    streamlit run tests/browser/canvas_harness.py

The weights are a real softmax of a fixed formula, so that a test knows every value; ``?scene=`` selects the figure.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import streamlit as st

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from charts.canvas.attention_heads import HeadWords, attention_heads
from charts.canvas.attention_maps import HeadChoice, attention_grid, attention_lines, attention_map
from charts.canvas.attention_overview import AnyHead, attention_overview
from charts.canvas.figure import CanvasFigure
from charts.canvas.mask_editor import mask_editor
from charts.canvas.value_map import value_map
from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import Token, TokenSequence
from ui.shell.frame import bring_canvas
from ui.show.drawings import show_grid, show_lines, show_map, show_mask_editor, show_overview

SENTENCE = [
    "<s>",
    "·The",
    "·cat",
    "·sat",
    "·on",
    "·the",
    "·mat",
    "·the",
    "·كتاب",
    "·👩🏽‍🚀",
    "·unbe",
    "lievably",
    "·<b>",
    ".",
    "</s>",
]
# Tokens that try to escape from the script, the attribute or the template that contains them.
HOSTILE = ["<s>", "</script><script>alert(1)</script>", "<!--", "{{script}}", "\"'&lt;", "]]>", "=1+1", "a,b"]
HOSTILE += ["</svg><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "javascript:alert(1)"]
# Tokens that a spreadsheet would execute, and three that it would not.
FORMULAS = ["=1+1", "+1+1", "-2+3", "@SUM(A1:A9)", "\t=1", "-0.5", "-", "·the"]


def sequence(displays: list[str], name: str = "source") -> TokenSequence:
    special = {"<s>", "</s>", "<pad>"}
    tokens = [
        Token(index=i, id=i, text=text.replace("·", " "), display=text, special=text in special)
        for i, text in enumerate(displays)
    ]
    return TokenSequence(tuple(tokens), name=name)


def view(
    query: list[str], key: list[str], *, layer: int, n_heads: int, kind: str, causal: bool, pads: int = 0
) -> AttentionView:
    """Return attention in which head h attends about h tokens back, more sharply in deeper layers."""
    row, column = np.arange(len(query))[:, None], np.arange(len(key))[None, :]
    heads = np.arange(n_heads)[:, None, None]
    scores = -(0.25 + 0.25 * layer) * np.abs(row - column - heads + 1) + 1.5 * np.cos(row * (heads + 1) + 2 * column)
    allowed = (column <= row) if causal else np.ones((len(query), len(key)), dtype=bool)
    allowed = allowed & (column < len(key) - pads)
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


def numbered(count: int) -> list[str]:
    return [f"·w{i}" for i in range(count)]


GRIDS = {
    "grid": (6, 8, SENTENCE),
    "sorted": (3, 4, SENTENCE[:8]),
    "deep": (12, 12, numbered(64)),
    "many": (32, 32, SENTENCE[:8]),
    "many sorted": (32, 32, SENTENCE[:8]),
}


def drawn(scene: str, state: Mapping[str, object] | None = None) -> CanvasFigure:
    """Return the figure of a scene; ``state`` holds what has been clicked in it."""
    state = state or {}
    causal = view(SENTENCE, SENTENCE, layer=1, n_heads=8, kind="self", causal=True)
    if scene == "map":
        return attention_map(causal, head=2, selected=state.get("cell"))
    if scene == "follows":
        return attention_map(causal, head=2, follow_pointer=True)
    if scene == "cross":
        source = [*SENTENCE[:8], "<pad>", "<pad>"]
        crossing = view(["<s>", "·Le", "·chat", "·est"], source, layer=0, n_heads=4, kind="cross", causal=False, pads=2)
        return attention_map(crossing, head=1, shifted_labels=["·Le", "·chat", "·est", "</s>"], stretch=True)
    if scene == "large":
        large = view(numbered(256), numbered(256), layer=0, n_heads=1, kind="self", causal=True)
        return attention_map(large, head=0)
    if scene == "mask":
        return mask_editor(causal, head=2, own=causal.allowed)
    if scene in ("hostile", "formulas"):
        tokens = HOSTILE if scene == "hostile" else FORMULAS
        return attention_map(view(tokens, tokens, layer=0, n_heads=2, kind="self", causal=True), head=1)
    if scene == "scores":
        return value_map(
            causal.scores[3],
            row_labels=causal.query.labels,
            column_labels=causal.key.labels,
            row_title="query: the token that attends",
            column_title="key: the token that is looked at",
            scale="diverging",
            allowed=causal.allowed,
            title="scores · head 3",
            value_name="score q·k/√dₖ",
        )
    if scene == "faint":
        return value_map(np.array([[0.0112, -0.0044]]), row_labels=["all"], column_labels=["0", "1"])
    if scene == "outlined":
        inside = np.zeros((6, 6), dtype=bool)
        inside[2:, 3:] = True
        names = list("abcdef")
        return value_map(np.zeros((6, 6)), row_labels=names, column_labels=names, outlined=inside)
    if scene == "blocks":  # rows lower than their labels, in three blocks
        names = [f"block {row // 30} row {row % 30}" for row in range(90)]
        return value_map(np.zeros((90, 4)), row_labels=names, column_labels=list("abcd"), height=300, breaks=[30, 60])
    if scene in ("words", "channels"):  # columns narrower than their labels
        names = [f"·{'abcdefg'[i % 7]}{'xyz'[i % 3]}" if scene == "words" else str(i) for i in range(64)]
        return value_map(np.ones((2, 64)), row_labels=["one", "other"], column_labels=names)
    if scene in GRIDS:
        layers, heads, words = GRIDS[scene]
        views = [view(words, words, layer=i, n_heads=heads, kind="self", causal=scene != "deep") for i in range(layers)]
        captions = {(0, 0): "previous token", (1, 2): "sink", (2, 1): "first token"} if scene != "deep" else None
        order = (
            sorted(((i, h) for i in range(layers) for h in range(heads)), key=lambda choice: -sum(choice))
            if scene.endswith("sorted")
            else None
        )
        return attention_grid(views, selected=state.get("head"), captions=captions, order=order)
    if scene.startswith("heads"):  # "heads 30 9": layers and heads; "heads 30 9 3": three share their keys
        layers, heads, *key = (int(number) for number in scene.split()[1:])
        views = [view(SENTENCE, SENTENCE, layer=i, n_heads=heads, kind="self", causal=True) for i in range(layers)]
        words = {
            (i, h): HeadWords("short", f"Job of {i}.{h}", "It looks there.")
            for i in range(layers)
            for h in range(heads)
        }
        more = {"heads_a_key": key[0], "scrolls": True} if key else {}
        return attention_heads(views, words=words, clear=[(1, 2), (2, 0)], selected=state.get("head") or (1, 2), **more)
    if scene == "deep overview":
        views = [view(SENTENCE, SENTENCE, layer=i, n_heads=9, kind="self", causal=True) for i in range(30)]
        return attention_overview([views], clear=[[(0, 0)]])
    if scene == "overview":
        own = [view(SENTENCE, SENTENCE, layer=i, n_heads=8, kind="self", causal=True) for i in range(3)]
        crossing = [view(["<s>", "·Le", "·chat"], SENTENCE, layer=0, n_heads=8, kind="cross", causal=False)]
        return attention_overview([own, crossing], selected=state.get("head"), captions=[{(0, 0): "sink"}, {}])
    if scene == "lines":
        return attention_lines(causal, heads=[0, 2, 5], selected_token=state.get("token"))
    raise ValueError(f"there is no scene {scene!r}")


def main() -> None:
    st.set_page_config(layout="wide")
    bring_canvas()
    scene, state = st.query_params.get("scene", "map"), st.session_state
    figure = drawn(scene, state)
    if scene == "mask":
        show_mask_editor(figure, key=scene, on_paint=remember("stroke"))
    elif scene in GRIDS or scene.startswith("heads"):
        show_grid(figure, key=scene, on_click=remember("head"))
    elif scene.endswith("overview"):
        show_overview(figure, key=scene, on_click=remember("head"))
    elif scene == "lines":
        show_lines(figure, key=scene, on_click=remember("token"))
    elif scene == "scores":
        show_map(figure, key=scene)
    else:
        show_map(figure, key=scene, on_click=remember("cell"))
    st.text(f"runs {state.setdefault('runs', 0)}")
    state["runs"] += 1
    for name in ("cell", "head", "token", "stroke"):
        if state.get(name) is not None:
            st.text(f"{name} {state[name]}")


def remember(name: str) -> Callable[[object], None]:
    """Select what was clicked in the figure."""

    def on_click(chosen: object) -> None:
        if isinstance(chosen, dict):
            places = tuple(chosen[part] for part in ("stack", "kind", "layer", "head") if part in chosen)
            chosen = AnyHead(*places) if "stack" in chosen else HeadChoice(*places)
        st.session_state[name] = tuple(chosen) if name == "cell" else chosen

    return on_click


if __name__ == "__main__":
    main()
