"""What the rows of a decoder's map are named after: the token that a row reads, or the one that it is to predict."""

from transformer.runs.attention_view import AttentionView
from transformer.runs.traces import Trace
from ui.shell import choice
from ui.shell.page import Page


def named_after_prediction(view: AttentionView) -> bool:
    """As the switch says. Before it is touched: in cross-attention yes, where a row looks for the source of the token
    that it predicts; in self-attention no, where it looks back at what was read."""
    if view.stack != "decoder":
        return False
    return choice.is_on(_key(view), default=_begins(view))


def switch(p: Page, view: AttentionView) -> bool:
    """The toggle, one for each kind of attention; an encoder predicts nothing from a row, and has none."""
    return view.stack == "decoder" and choice.toggle(
        p.text["predicted"], default=_begins(view), key=_key(view), help=p.text["predicted_help"]
    )


def labels_of(trace: Trace, view: AttentionView, *, predicted: bool) -> tuple[str, ...]:
    return trace.prediction.labels if predicted else view.query.labels


def _begins(view: AttentionView) -> bool:
    return view.kind == "cross"


def _key(view: AttentionView) -> str:
    """Keys of their own, so that a choice for one kind is none for the other."""
    return "attention_predicted_cross" if view.kind == "cross" else "attention_predicted"
