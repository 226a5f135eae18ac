"""Choosing a stack, kind of attention, layer and head, in the sidebar of the pages that ask for it; and a section."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from transformer.config import ModelConfig
from ui import focus as shared_focus
from ui.focus import Focus, attention_kinds
from ui.text import PageText, common

NEEDS = ("stack", "kind", "layer", "head", "token")
_MOST_BUTTONS = 8


def selectors(focus: Focus, config: ModelConfig, *, needs: Sequence[str], room: DeltaGenerator) -> None:
    """Draw in ``room`` what ``needs`` names and the model leaves a choice of; a choice changes the shared focus."""
    kinds = attention_kinds(config)
    stacks = tuple(dict.fromkeys(stack for stack, _ in kinds))
    n_layers = config.n_encoder_layers if focus.stack == "encoder" else config.n_decoder_layers
    with room:
        if "kind" in needs and len(kinds) > 1:
            _choose("kind", [f"{stack} {kind}" for stack, kind in kinds], f"{focus.stack} {focus.kind}", _change_kind)
        elif "stack" in needs and len(stacks) > 1:
            _choose("stack", list(stacks), focus.stack, _change_stack)
        if "layer" in needs:
            _choose("layer", list(range(n_layers)), focus.layer)
        if "head" in needs:
            _choose("head", list(range(config.n_heads)), focus.head)


def _choose(name: str, options: list, value: object, change: Callable[[], None] | None = None) -> None:
    """Buttons while they fit, else a list. The widget is set from the focus and reports to it; it keeps nothing."""
    key = f"choose {name}"
    if st.session_state.get(key) != value:
        st.session_state[key] = value
    shared = {
        "options": options,
        "key": key,
        "on_change": change or _change,
        "args": () if change else (name,),
        "format_func": lambda option: common(f"focus.{option}") if isinstance(option, str) else str(option),
    }
    if len(options) <= _MOST_BUTTONS:
        st.segmented_control(common(f"focus.{name}"), required=True, **shared)
    else:
        st.selectbox(common(f"focus.{name}"), **shared)


def _change(name: str) -> None:
    shared_focus.change(**{name: st.session_state[f"choose {name}"]})


def _change_kind() -> None:
    stack, kind = st.session_state["choose kind"].split()
    same_stack = stack == shared_focus.current().stack
    shared_focus.change(kind=kind, **({} if same_stack else {"stack": stack}))


def _change_stack() -> None:
    shared_focus.change(stack=st.session_state["choose stack"], kind="self")


def chosen_section(text: PageText, sections: Sequence[str], *, key: str, **more: object) -> str:
    """Which section of a page to draw, by the names ``section_<name>`` of its text; it is kept in the address.

    Unlike tabs, only what is chosen is computed.
    """
    names = {text[f"section_{section}"]: section for section in sections}
    first = next(iter(names))
    chosen = st.segmented_control(
        text["section"],
        list(names),
        default=first,
        required=True,
        key=key,
        bind="query-params",
        persist_state="session",
        wrap=True,
        **more,
    )
    return names.get(chosen, names[first])


def chosen_option(text: PageText, name: str, options: Sequence[str], *, key: str, **more: object) -> str:
    """One of a few as a row of buttons, shown by the names ``<name>_<option>`` of a page's text, the first at first.

    The choice survives a change of page; with ``bind="query-params"`` it is in the address, too.
    """
    return st.segmented_control(
        text[name],
        options,
        default=options[0],
        required=True,
        format_func=lambda option: text[f"{name}_{option}"],
        key=key,
        persist_state="session",
        **more,
    )
