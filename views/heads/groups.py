"""Heads that share their keys and values."""

from transformer.runs.attention_view import AttentionView
from ui.shell.page import Page


def heads_of_one_key(p: Page, view: AttentionView) -> range:
    """The heads of this layer that share their keys and values with the focused one, itself among them (Ainslie et al.
    2023, "GQA": grouped queries)."""
    attention = p.checkpoint.model.get_submodule(view.name)
    size = attention.n_heads // getattr(attention, "n_key_heads", attention.n_heads)
    first = p.focus.head - p.focus.head % size
    return range(first, first + size)
