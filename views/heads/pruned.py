"""What the Heads page says of heads that are off."""

from collections.abc import Iterable, Sequence

from transformer.analysis.head_circuits import pruned_heads
from transformer.runs.attention_view import AttentionView
from ui.shell.page import Page
from ui.words.texts import PageText

Place = tuple[int, int]  # layer, head


def pruned_places(p: Page, views: Sequence[AttentionView]) -> list[Place]:
    """Of the layers of one kind of attention."""
    model = p.checkpoint.model
    return [(view.layer, head) for view in views for head in pruned_heads(model.get_submodule(view.name))]


def pruned_captions(off: Iterable[Place], text: PageText) -> dict[Place, str]:
    """What stands under their maps in place of a role."""
    return dict.fromkeys(off, text["pruned_short"])


def pruned_note(off: Sequence[Place], text: PageText) -> str:
    heads = ", ".join(text["induction_head"].format(layer=layer, head=head) for layer, head in off)
    return text["pruned"].format(count=len(off), heads=heads)
