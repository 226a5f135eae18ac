"""Figures of tokens: the merges that build a word, and the boundaries of several tokenizers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from charts.toolkit import style
from charts.toolkit.checks import require_same_length
from charts.toolkit.numbers import whole
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import say

if TYPE_CHECKING:
    from transformer.text.tokens import Token, TokenSequence

_ROW = 30  # pixels of a row of boxes
_MAX_BYTES = 400  # longest ruler whose boxes are wide enough for their texts
_BOX: dict[str, Any] = {"orientation": "h", "insidetextanchor": "middle", "textangle": 0}  # a bar with a text in it
_LONE_BYTE = re.compile(r"⟨[0-9A-F]{2}⟩")


def merge_tree(
    states: Sequence[Sequence[str]],
    *,
    ranks: Sequence[int] | None = None,
    display: Callable[[str], str] = str,
    n_steps: int | None = None,
    of_characters: bool = False,
) -> go.Figure:
    """Draw byte-pair encoding of one word from top to bottom: its bytes, then one merge after the other.

    ``states``: the pieces after each merge, the first state before any; a piece is as wide as the number of first
    pieces in it, so that a merged piece is right below its parts. New pieces are coloured. ``ranks``: for each merge
    its number in the tokenizer's list (lower = learned earlier). ``display`` makes a piece readable (é is two bytes,
    which are not letters by themselves). ``n_steps`` reserves space for that many merges, so that the figure does not
    move while a reader steps through it. ``of_characters``: the word begins as characters, not as bytes. Raises
    ``ValueError`` unless each state results from the previous one by joining neighbouring pieces.
    """
    if not states or not states[0]:
        raise ValueError(f"states is {list(states)!r}; give at least the first state with at least one piece")
    if ranks is not None:
        require_same_length("ranks", ranks, expected=len(states) - 1, of="merges")
    layouts = [[(index, 1) for index in range(len(states[0]))]]
    for step in range(1, len(states)):
        layouts.append(_joined(states[step - 1], layouts[-1], states[step], step=step))
    figure = Sheet()
    for fresh, name, colour in (
        (False, say("tokens.as_before"), style.PALE),
        (True, say("tokens.joined_step"), style.CHOSEN),
    ):
        boxes = [
            (step, start, width, piece)
            for step, (state, layout) in enumerate(zip(states, layouts, strict=True))
            for piece, (start, width) in zip(state, layout, strict=True)
            if (step > 0 and (start, width) not in layouts[step - 1]) == fresh
        ]
        if boxes:
            figure.bar(
                **_BOX,
                base=[start + 0.04 for _, start, _, _ in boxes],
                x=[width - 0.08 for _, _, width, _ in boxes],
                y=[step for step, *_ in boxes],
                name=name,
                marker={"color": colour, "line": {"width": 0}, "cornerradius": 4},
                text=[style.escape(display(piece)) for *_, piece in boxes],
                textposition="inside",
                constraintext="none",
                textfont={"size": style.TITLE_SIZE, "color": "#FFFFFF" if fresh else "#000000"},
                hovertemplate=f"%{{text}}<br>{name}<extra></extra>",
            )
    labels = [say("tokens.characters") if of_characters else say("tokens.bytes")]
    for step in range(1, len(states)):
        if ranks is None:
            labels.append(say("tokens.merge", step=step))
        else:
            labels.append(say("tokens.merge_rule", step=step, rule=whole(ranks[step - 1])))
    labels += [""] * max(0, (n_steps or 0) + 1 - len(states))
    style.finish(figure, height=_ROW * len(labels) + 90, top=40)
    figure.update_layout(barmode="overlay", bargap=0.18)
    letters = say("tokens.word_characters") if of_characters else say("tokens.word_bytes")
    bare = {"showgrid": False, "showticklabels": False, "zeroline": False}
    figure.update_xaxes(**bare, title_text=letters.format(n=len(states[0])), range=[0, len(states[0])])
    figure.update_yaxes(**style.label_rows(labels, title=say("tokens.step")))
    return figure.drawn()


def _joined(
    before: Sequence[str], layout: list[tuple[int, int]], after: Sequence[str], *, step: int
) -> list[tuple[int, int]]:
    """Return (start, width) of every piece of ``after``, each joined from neighbours in ``before``."""
    places, index = [], 0
    for piece in after:
        text, first = "", index
        while index < len(before) and len(text) < len(piece):
            text += before[index]
            index += 1
        if text != piece:
            raise ValueError(
                f"states: after merge {step} stands the piece {piece!r}, but the pieces before it give {text!r}; "
                f"each state must be the one before with neighbouring pieces joined"
            )
        places.append((layout[first][0], sum(width for _, width in layout[first:index])))
    if index != len(before):
        raise ValueError(f"states: merge {step} lost the pieces {list(before[index:])!r}")
    return places


def token_lengths(sequences: Mapping[str, TokenSequence]) -> go.Figure:
    """Draw the sentence as one row per tokenizer; the width of a token's box is its number of UTF-8 bytes.

    ``sequences``: the tokens of the same sentence by the name of the tokenizer. The figure leaves out special tokens,
    which are not part of the sentence. A letter without an accent is one byte, an emoji usually four. A
    negative id stands for a piece that the vocabulary lacks.
    """
    if not sequences:
        raise ValueError("sequences is empty; give at least one tokenizer's tokens")
    figure = Sheet()
    longest = 0
    for row, (name, tokens) in enumerate(sequences.items()):
        start, boxes = 0, []
        for token in tokens:
            if not token.special:
                width = _n_bytes(token)
                boxes.append((start, width, token))
                start += width
        longest = max(longest, start)
        figure.bar(
            **_BOX,
            base=[start for start, *_ in boxes],
            x=[width for _, width, _ in boxes],
            y=[row] * len(boxes),
            name=style.escape(name),
            # Neighbours differ in colour to show the boundaries; the colour has no other meaning.
            marker={
                "color": [style.CATEGORICAL[0] if number % 2 else style.CATEGORICAL[4] for number in range(len(boxes))],
                "line": {"width": 0},
            },
            text=[style.escape(token.display) for *_, token in boxes],
            textposition="inside" if start <= _MAX_BYTES else "none",  # measuring hundreds of texts takes seconds
            # The width is included, since Plotly's %{x} is the end of a box.
            customdata=[
                [width, say("tokens.id", id=f"<b>{token.id}</b>") if token.id >= 0 else say("tokens.not_vocabulary")]
                for _start, width, token in boxes
            ],
            hovertemplate=style.hover(
                "%{text}", say("tokens.bytes_of_token", count="%{customdata[0]}", what="%{customdata[1]}")
            ),
            showlegend=False,
        )
    labels = [
        say("tokens.token_count", name=name, n=sum(not token.special for token in tokens))
        for name, tokens in sequences.items()
    ]
    style.finish(figure, height=56 * len(labels) + 80)
    # A label that does not fit its box appears only in the hover instead of shrinking to nothing.
    figure.update_layout(barmode="overlay", uniformtext={"minsize": 10, "mode": "hide"})
    figure.update_xaxes(title_text=say("tokens.byte_axis"), range=[0, max(1, longest)])
    figure.update_yaxes(**style.label_rows(labels, title=say("names.tokenizer")))
    return figure.drawn()


def _n_bytes(token: Token) -> int:
    """Return the number of bytes of a token; single bytes such as ⟨F0⟩ are counted in ``display``."""
    if lone := _LONE_BYTE.findall(token.display):
        rest = _LONE_BYTE.sub("", token.display)
        return len(lone) + sum(1 if character in "·⏎⇥" else len(character.encode()) for character in rest)
    return len(token.text.encode("utf-8"))
