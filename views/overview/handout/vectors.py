"""The steps before the first layer: tokens, the rows of E that they fetch, and their positions."""

from charts.documents.guide import Cards, Paragraph, Section
from charts.toolkit.numbers import whole
from transformer.runs.traces import Trace
from ui.shell.focus import Focus
from ui.words.texts import page_text


def tokens(trace: Trace, focus: Focus) -> Section:
    """Every stack's tokens with their ids."""
    page, text = page_text("tokens"), page_text("overview")["handout"]
    parts = []
    for stack in trace.stacks:
        cards = tuple((token.display, str(token.id), token.special) for token in trace.tokens(stack))
        parts += [Paragraph(text[f"tokens_{stack}"].format(count=whole(len(cards)))), Cards(cards)]
    return Section("tokens", page.title, page.question, tuple(parts))
