"""The mask that a person has made: a preset, cells drawn on top of it, and how far it reaches; with undo."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import streamlit as st

from transformer.runs.attention_view import AttentionView
from transformer.text.word_spans import words_of
from ui.shell import choice
from ui.shell.actions import Actions, PaintMask, SetChoice
from ui.shell.page import Page
from ui.shell.reducer import State

_MASK = "mask"  # the recipe, as texts
_NOW, _PAST, _OF = "mask now", "mask past", "mask of"  # of the last run, for callbacks
_MAX_STEPS = 50
_PAIR = re.compile(r"([0-9]{1,5})-([0-9]{1,5})")


@dataclass(frozen=True)
class Recipe:
    """``cells``: (query, key, allowed) in the order in which they were drawn; ``everywhere``: in all layers."""

    preset: str = "own"
    size: int = 2
    word: int = 0
    everywhere: bool = True
    cells: tuple[tuple[int, int, bool], ...] = ()

    def specs(self, view: AttentionView, words: Sequence) -> tuple[str, ...]:
        """As texts of ``transformer.runs.edit_specs``, for the layer of ``view`` or for all."""
        prefix = f"mask:{view.stack}.{'*' if self.everywhere else view.layer}.{view.kind}="
        values = []
        if self.preset == "window":
            values.append(f"window {self.size}")
        elif self.preset == "word":
            word = words[min(self.word, len(words) - 1)]
            values.append("keys " + ",".join(map(str, range(word.start, word.end))))
        elif self.preset != "own":
            values.append(self.preset)
        return tuple(prefix + value for value in (*values, *self._drawn()))

    def _drawn(self) -> list[str]:
        """ "allow 2-3,2-4" and "block 0-1": the cells as they are in the end."""
        return _drawn_texts({(query, key): allowed for query, key, allowed in self.cells})

    def to_texts(self) -> tuple[str, ...]:
        """For the address: "window 3", "layer", "allow 2-3"; only what differs from a recipe that changes nothing."""
        number = {"window": f" {self.size}", "word": f" {self.word}"}.get(self.preset, "")
        preset = [] if self.preset == "own" else [self.preset + number]
        return (*preset, *([] if self.everywhere else ["layer"]), *self._drawn())

    @classmethod
    def from_texts(cls, texts: Sequence[str], view: AttentionView, words: Sequence) -> Recipe:
        """What ``to_texts`` wrote, as far as it makes sense for this map; the rest is left out."""
        recipe, cells = cls(), []
        for text in texts:
            name, _, rest = text.partition(" ")
            number = int(rest) if rest.isascii() and rest.isdecimal() and len(rest) < 6 else None
            if name == "layer":
                recipe = replace(recipe, everywhere=False)
            elif name in ("allow", "block"):
                for part in rest.split(","):
                    found = _PAIR.fullmatch(part)
                    if found and int(found[1]) < len(view.query) and int(found[2]) < len(view.key):
                        cells.append((int(found[1]), int(found[2]), name == "allow"))
            elif name in presets(view, words):
                size = {"window": {"size": max(1, number or 2)}, "word": {"word": number or 0}}.get(name, {})
                recipe = replace(recipe, preset=name, **size)
        return replace(recipe, cells=tuple(cells))


def _drawn_texts(cells: Mapping[tuple[int, int], bool]) -> list[str]:
    drawn = []
    for name, wanted in (("allow", True), ("block", False)):
        if pairs := [f"{query}-{key}" for (query, key), allowed in sorted(cells.items()) if allowed == wanted]:
            drawn.append(f"{name} {','.join(pairs)}")
    return drawn


def presets(view: AttentionView, words: Sequence) -> tuple[str, ...]:
    """Those that say something about this kind of attention."""
    names = ["own"]
    if (view.stack, view.kind) == ("decoder", "self"):
        names.append("no_causal")
    else:
        names.append("no_padding")
    if view.kind == "self":
        names += ["window", "itself"]
    return (*names, *(["word"] if words else []))


def current(p: Page, view: AttentionView, words: Sequence) -> Recipe:
    """The recipe of this map. Drawn cells belong to one sentence and kind of attention; a preset stays."""
    of = hash((p.checkpoint.fingerprint, view.query.ids, view.key.ids, view.stack, view.kind))
    state = st.session_state
    recipe = Recipe.from_texts(choice.values(_MASK), view, words)
    if state.get(_OF, of) != of and recipe == state[_NOW]:  # another map, and no address that brings a mask for it
        recipe = replace(recipe, cells=(), word=0)
    if state.get(_OF) != of:
        state[_OF], state[_PAST] = of, []
    elif recipe != state[_NOW]:  # painted
        _remember(state[_NOW])
    if recipe.to_texts() != choice.values(_MASK):
        choice.put(_MASK, *recipe.to_texts())
    state[_NOW] = recipe
    return recipe


def change(**values: object) -> None:
    """Change the recipe, with the old one kept for ``undo``."""
    now = st.session_state.get(_NOW, Recipe())
    new = replace(now, **values)
    if new != now:
        _remember(now)
        _keep(new)


def _remember(recipe: Recipe) -> None:
    """For ``undo``."""
    st.session_state[_PAST] = [*st.session_state.get(_PAST, [])[-_MAX_STEPS:], recipe]


def _keep(recipe: Recipe) -> None:
    st.session_state[_NOW] = recipe
    choice.put(_MASK, *recipe.to_texts(), page="masks")


def paint(state: State, stroke: PaintMask) -> Actions:
    """What a stroke means: its cells are added to the mask."""
    drawn, others = {}, []
    for text in state.values(_MASK):
        name, _, rest = text.partition(" ")
        if name in ("allow", "block"):
            drawn |= {tuple(map(int, pair)): name == "allow" for pair in _PAIR.findall(rest)}
        else:
            others.append(text)
    drawn |= {(cell.query, cell.key): stroke.allowed for cell in stroke.cells}
    return (SetChoice(_MASK, (*others, *_drawn_texts(drawn))),)


def undo() -> None:
    if past := st.session_state.get(_PAST, []):
        _keep(past[-1])
        st.session_state[_PAST] = past[:-1]


def reset() -> None:
    change(preset="own", cells=())


def controls(p: Page, view: AttentionView, words: Sequence) -> Recipe:
    """Preset, its number or word, and reach; the widgets are set from the recipe and report to it."""
    text, recipe = p.text, current(p, view, words)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="mask controls"):
        _choose("preset", presets(view, words), recipe.preset, lambda name: _preset_name(p, view, name), p)
        _choose("scope", ("all", "layer"), "all" if recipe.everywhere else "layer", lambda n: text[f"scope_{n}"], p)
        if recipe.preset == "window":
            longest = max(2, len(view.key))
            _set("mask size", min(recipe.size, longest))
            st.slider(text["size"], 1, longest, key="mask size", on_change=_report, args=("size",), width=260)
        if recipe.preset == "word":
            _set("mask word", min(recipe.word, len(words) - 1))
            st.selectbox(
                text["word"],
                range(len(words)),
                format_func=lambda index: words[index].text,
                key="mask word",
                on_change=_report,
                args=("word",),
                width=220,
            )
    return recipe


def take_back(p: Page, recipe: Recipe) -> None:
    """Undo and reset."""
    past, untouched = st.session_state.get(_PAST, []), recipe.preset == "own" and not recipe.cells
    with st.container(horizontal=True, gap="small"):
        st.button(p.text["undo"], icon=":material/undo:", on_click=undo, disabled=not past, key="mask undo")
        st.button(p.text["reset"], icon=":material/restart_alt:", on_click=reset, disabled=untouched, key="mask reset")


def _preset_name(p: Page, view: AttentionView, name: str) -> str:
    return p.text["preset_window_encoder" if name == "window" and view.stack == "encoder" else f"preset_{name}"]


def _choose(name: str, options: Sequence[str], value: str, format_func, p: Page) -> None:
    _set(f"mask {name}", value)
    st.segmented_control(
        p.text[name],
        options,
        key=f"mask {name}",
        required=True,
        format_func=format_func,
        on_change=_report,
        args=(name,),
        help=p.text[f"{name}_help"],
        wrap=True,
    )


def _set(key: str, value: object) -> None:
    if st.session_state.get(key) != value:
        st.session_state[key] = value


def _report(name: str) -> None:
    value = st.session_state[f"mask {name}"]
    if name == "preset":
        change(preset=value, cells=())
    elif name == "scope":
        change(everywhere=value == "all")
    else:
        change(**{name: value})


def words_in(view: AttentionView) -> tuple:
    """The words that can be blocked: those of the keys."""
    return words_of(view.key)
