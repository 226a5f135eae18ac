"""Questions about the view of a link, with answers computed from the live trace."""

from collections import Counter
from collections.abc import Mapping
from math import log2

from charts.toolkit.head_names import head_in_full
from charts.toolkit.style import three_digits
from charts.toolkit.words import _
from transformer import Trace
from transformer.predictions.answer_probabilities import read_answer
from transformer.runs.head_places import Head
from transformer.text.tokens import TokenSequence
from ui.shell.focus import Focus
from ui.shell.selectors import traits_of
from ui.words.texts import PageText, as_plain, common
from views.lessons.worksheet import Exercise, Sheet

_HEADS = ("strongest", "share", "entropy", "masked", "received")
_TOKENS = ("count", "id", "repeated", "pieces")
_ANSWER = ("answer", "steps", "first", "doubt", "whole")
_ASKED: Mapping[str, tuple[str, ...]] = {
    "tokens": _TOKENS,
    "embeddings": ("count", "numbers", "repeated", "id"),
    "positions": ("count", "numbers", "place", "apart"),
    "attention": _HEADS,
    "heads": _HEADS,
    "masks": _HEADS,
    "surgery": ("strongest", "entropy", "answer", "whole"),
    "add_norm": ("count", "numbers", "answer", "whole"),
    "feed_forward": ("count", "hidden", "answer", "whole"),
}


def view_sheet(page: PageText, focus: Focus, trace: Trace, *, text: PageText, link: str) -> Sheet:
    """Return a worksheet for the view of a link, with answers that are computed from ``trace``.

    It has the page's question, what to notice, and questions. ``focus`` fits the model and the trace; ``text`` is that
    of the lessons.
    """
    checkpoint, stack = trace.checkpoint, trace.tokens(focus.stack)
    place = [text["place_stack"].format(stack=common(f"focus.{focus.stack}"))]
    facts = [(text["fact_checkpoint"], checkpoint.name), (text["fact_sentence"], focus.sentence)]
    if focus.target and checkpoint.config.has_decoder:
        facts.append((text["fact_target"], focus.target))
    if page.name in ("attention", "heads", "masks", "surgery"):
        place = [head_in_full(Head(focus.stack, focus.kind, focus.layer, focus.head))]
    facts.append(
        (text["fact_place"], ", ".join((*place, text["place_token"].format(token=_quoted(stack, focus.token)))))
    )
    return Sheet(
        title=page.title,
        aim=page.question,
        facts=tuple(facts),
        notes=page.look_for_of(traits_of(checkpoint.config)),
        exercises=questions(page.name, focus, trace, text=text),
        link=link,
        checkpoint=checkpoint,
    )


def questions(page: str, focus: Focus, trace: Trace, *, text: Mapping[str, str]) -> tuple[Exercise, ...]:
    """Return three to five exercises for one kind of page; they are about the output if the page has none."""
    facts = _Facts(focus, trace)
    names = _ASKED.get(page, _ANSWER)
    if not facts.given.parts:  # a masked-token model without a blank
        names = tuple(dict.fromkeys(name for name in (*names, *_TOKENS) if name not in _ANSWER))[:5]
    made = []
    for name in names:
        values = {name: as_plain(str(value)) for name, value in getattr(facts, name)().items()}
        made.append(
            Exercise(question=text[f"ask_{name}"].format(**values), answer=text[f"tell_{name}"].format(**values))
        )
    return tuple(made)


class _Facts:
    """The values of the questions: one method for each, a dictionary for its two texts."""

    def __init__(self, focus: Focus, trace: Trace) -> None:
        self.focus, self.config, self.trace = focus, trace.checkpoint.config, trace
        self.view = trace.attention(focus.stack, focus.layer, focus.kind)
        self.tokens = trace.tokens(focus.stack)
        self.row = self.view.weights[focus.head, focus.token]
        self.where = {"layer": focus.layer, "head": focus.head, "row": _quoted(self.view.query, focus.token)}
        self.given = read_answer(trace)

    def strongest(self) -> dict[str, object]:
        best = int(self.row.argmax())
        return {**self.where, "key": _quoted(self.view.key, best), "weight": three_digits(float(self.row[best]))}

    def share(self) -> dict[str, object]:
        return {**self.where, "sum": three_digits(float(self.row.sum())), "keys": len(self.row)}

    def entropy(self) -> dict[str, object]:
        bits = float(self.view.entropy[self.focus.head, self.focus.token])
        allowed = int(self.view.allowed[self.focus.token].sum())
        most = log2(allowed) if allowed else 0.0
        return {**self.where, "bits": three_digits(bits), "allowed": allowed, "most": three_digits(most)}

    def masked(self) -> dict[str, object]:
        return {"masked": int((~self.view.allowed).sum()), "cells": self.view.allowed.size}

    def received(self) -> dict[str, object]:
        sums = self.view.weights[self.focus.head].sum(axis=0)
        best = int(sums.argmax())
        return {**self.where, "key": _quoted(self.view.key, best), "sum": three_digits(float(sums[best]))}

    def count(self) -> dict[str, object]:
        special = sum(token.special for token in self.tokens)
        return {"stack": common(f"focus.{self.focus.stack}"), "count": len(self.tokens), "special": special}

    def id(self) -> dict[str, object]:
        return {"token": _quoted(self.tokens, self.focus.token), "id": self.tokens[self.focus.token].id}

    def repeated(self) -> dict[str, object]:
        often = [display for display, count in Counter(self.tokens.displays).items() if count > 1]
        return {"tokens": ", ".join(_("‘{token}’", token=display) for display in often) or "–"}

    apart = repeated

    def pieces(self) -> dict[str, object]:
        words = "".join("\0" + token.display if token.starts_word else "\1" + token.display for token in self.tokens)
        longest = max(words.split("\0"), key=lambda word: word.count("\1"))
        return {"word": longest.replace("\1", ""), "count": longest.count("\1") + 1}

    def place(self) -> dict[str, object]:
        return {"token": _quoted(self.tokens, self.focus.token), "position": self.focus.token}

    def numbers(self) -> dict[str, object]:
        width, count = self.config.d_model, len(self.tokens)
        return {"count": count, "width": width, "numbers": count * width}

    def hidden(self) -> dict[str, object]:
        return {"width": self.config.d_model, "hidden": self.config.d_ff}

    def answer(self) -> dict[str, object]:
        return {"answer": self.given.text or "–"}

    def steps(self) -> dict[str, object]:
        return {
            "count": len(self.given.parts),
            "parts": " ".join(_("‘{token}’", token=part.display) for part in self.given.parts),
        }

    def first(self) -> dict[str, object]:
        part = self.given.parts[0]
        return {"part": _("‘{token}’", token=part.display), "probability": three_digits(part.probability)}

    def doubt(self) -> dict[str, object]:
        part = min(self.given.parts, key=lambda part: part.probability)
        return {"part": _("‘{token}’", token=part.display), "probability": three_digits(part.probability)}

    def whole(self) -> dict[str, object]:
        return {"answer": self.given.text or "–", "probability": three_digits(self.given.probability)}


def _quoted(tokens: TokenSequence, index: int) -> str:
    return _("‘{token}’", token=tokens.labels[index])
