"""Which layer and head the attention on the page is of; the sidebar lets choose only what changes it.

What the sidebar holds is drawn before the page knows what it will show. So the run before says it, and a run that
finds it otherwise begins again.
"""

from collections.abc import Sequence

import streamlit as st

from ui.shell.choice import one_of
from ui.shell.page import Page
from ui.words.texts import page_texts

_NEEDED = "decoding: what the sidebar lets choose"
_AT_FIRST = ("layer",)  # the mean of all heads


def needed() -> tuple[str, ...]:
    """Of "layer" and "head" those that change what is shown, for ``page(needs=…)``."""
    return st.session_state.get(_NEEDED, _AT_FIRST)


def settle(*names: str) -> None:
    """What is shown now depends on ``names``."""
    if needed() != names:
        st.session_state[_NEEDED] = names
        st.rerun()


def choose_heads(p: Page) -> int | None:
    """The head to show; ``None``: the mean of all. Only for one head the sidebar has its row of heads."""
    return p.focus.head if choose(p, "attention_heads", ["mean", "one"], "attention") == "one" else None


def of_heads(p: Page, *, layer: int, head: int | None) -> str:
    """Which attention is shown, in words: of one head, or the mean of those of a layer."""
    stack = "decoder" if p.checkpoint.config.has_decoder else "encoder"
    count = p.checkpoint.config.heads_in(stack)
    return p.text["attention_of_mean" if head is None else "attention_of_one"].format(
        layer=layer, count=count, head=head
    )


def choose(p: Page, key: str, options: Sequence[str], name: str) -> str:
    """One of a few, as buttons in a row, called ``<name>_<option>`` in the page's text; kept in the address."""
    texts, heads = page_texts(p.text.name), (p.focus.head, *range(p.checkpoint.config.heads_in(p.focus.stack)))

    def called(option: str) -> list[str]:  # an address may have been made when another head was looked at
        return [text[f"{name}_{option}"].format(head=head) for head in heads for text in texts]

    return one_of(p.text[key], {option: called(option) for option in options}, key=key)
