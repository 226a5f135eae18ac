"""Figures of the logit lens: the prediction after each layer, and the probabilities of words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, shades, style
from charts.toolkit.checks import require_index
from charts.toolkit.numbers import whole
from charts.toolkit.sheet import Sheet, scatter
from charts.toolkit.words import localize, say

if TYPE_CHECKING:
    from transformer.predictions.lens import Lens, WordProbabilities

COLOURS = ("probability", "rank", "divergence")
ON_A_PHONE, LONGEST_ON_A_PHONE = 3, 8  # columns, and characters of a word in a cell
LONGEST = 9  # characters of a word in a cell; the hover has all of them
# On the left, where it can be seen before a wide grid has been scrolled.
_BAR = {"x": 0, "xanchor": "left", "lenmode": "pixels", "len": 300}
_READS = {
    "encoder": "each column: the encoder reads this token",
    "decoder": "each column: the decoder has read up to this token",
}
_LETTER, _LEAST = 7.6, 44  # pixels of a bold letter in a cell, and of a column without a long word
_NAMES = 135  # pixels of the names of the rows


def room_of(lens: Lens) -> int:
    """Return the pixels that a grid needs so that the words fit into their cells."""
    longest = max(len(_short(word)) for row in lens.words for word in row)
    return round(len(lens.read) * max(_LEAST, _LETTER * longest + 3)) + _NAMES


def middle_of(lens: Lens, column: int) -> float:
    """Return where the middle of a column is in a grid of ``room_of`` pixels, 0…1."""
    room = room_of(lens)
    return (_NAMES + (room - _NAMES) * (column + 0.5) / len(lens.read)) / room


def narrow_part(lens: Lens, column: int) -> tuple[Lens, int]:
    """Return the columns around one of them that fit on a phone, and which of them it is."""
    last = min(len(lens.read), max(column + 2, ON_A_PHONE))
    first = max(0, last - ON_A_PHONE)
    return lens.part(first, last), column - first


def lens_grid(
    lens: Lens, *, colour: str = "probability", selected: int | None = None, is_narrow: bool = False
) -> go.Figure:
    """Draw the most likely word after every step at every position, the last step on top.

    A frame marks the step from which the followed word is the most likely.

    Args:
        lens: The readout.
        colour: "probability" of the followed word (0…1), its "rank" (bright = 1, logarithmic), or the "divergence" from
            the last step, KL in nats (bright = 0).
        selected: Index of the position whose column is marked.
        is_narrow: Whether it has room for a phone's width only: then the axes have no titles.
    """
    if colour not in COLOURS:
        raise ValueError(f"colour is {colour!r}; choose one of {', '.join(COLOURS)}")
    n_steps, n_positions = lens.probability.shape
    if selected is not None:
        require_index(selected, name="selected position", size=n_positions)
    # If the followed words are not the most likely ones, they are shown above the grid.
    other = not lens.of_classes and bool((lens.ids[-1, :, 0] != lens.followed).any())
    trace, shares = _cells(lens, colour, above=other)
    longest = LONGEST_ON_A_PHONE if is_narrow else LONGEST
    words = [[style.escape(_short(word, longest)) for word in row] for row in lens.words]
    places = list(np.ndindex(n_steps, n_positions))
    inks = [shades.ink(float(shares[place]), colours=style.SEQUENTIAL) for place in places]
    texts = scatter(
        x=[position for _, position in places],
        y=[step for step, _ in places],
        mode="text",
        text=[f"<b>{words[s][p]}</b>" if lens.ids[s, p, 0] == lens.followed[p] else words[s][p] for s, p in places],
        textfont={"size": style.TEXT_SIZE, "color": inks},
        hoverinfo="skip",
    )
    figure = Sheet(trace, texts)
    row = 46 if n_steps <= 6 else 34
    style.finish(figure, height=min(row * n_steps, 800) + 140 + 26 * other, top=64 + 26 * other)
    steps = [localize(step) for step in lens.steps]
    names = [*steps[:-1], style.lines(steps[-1], f"<b>{say('lens.equals_prediction')}</b>")]
    figure.update_yaxes(
        **{**style.label_axis(steps, title=say("lens.read_after")), "ticktext": names, "autotickangles": [0]}
    )
    reads = style.label_axis([localize(word) for word in lens.read], title=localize(_READS[lens.stack]))
    figure.update_xaxes(**{**reads, "tickfont_size": style.TICK_SIZE})
    for position, step in enumerate(lens.decided):
        if step >= 0:
            box = {"x0": position - 0.48, "x1": position + 0.48, "y0": int(step) - 0.46, "y1": int(step) + 0.46}
            line = {"color": style.CHOSEN, "width": 4 if position == selected else 2}
            figure.add_shape(type="rect", **box, line=line)
    if other:
        for position, word in enumerate(lens.followed_words):
            figure.add_annotation(
                text=f"<b>{style.escape(_short(word))}</b>", x=position, y=n_steps - 0.5, yanchor="bottom", yshift=2
            )
    if selected is not None:
        whole = {"x0": selected - 0.5, "x1": selected + 0.5, "y0": -0.5, "y1": n_steps - 0.5, "name": "focus"}
        figure.add_shape(type="rect", **whole, line={"color": style.NEUTRAL, "width": 3, "dash": "dot"})
    if is_narrow:
        trace["colorbar"] |= {"len": 190, "title": {"text": ""}}
        figure.update_xaxes(title_text="")
        figure.update_yaxes(title_text="")
    return figure.drawn()


def _cells(lens: Lens, colour: str, *, above: bool) -> tuple[dict, np.ndarray]:
    """Return the heatmap, and the position of each cell on the colour scale (0…1).

    With ``above``, the followed words are above the grid, otherwise in its top row.
    """
    classes, word = lens.of_classes, "%{customdata}"
    followed = say("lens.followed_class", word=word) if classes else say("lens.followed_word", word=word)
    hover = style.lines(say("lens.after_step", step="%{y}", token="%{x}"), "%{text}", followed)
    if colour == "probability":
        values, most = lens.probability, 1.0
        if classes:
            name = say("lens.final_class_probability")
        elif above:
            name = say("lens.column_word_probability")
        else:
            name = say("lens.top_word_probability")
        bar, what = style.colour_bar(name, **_BAR), say("lens.its_probability")
    elif colour == "rank":
        values = np.log10(lens.rank)
        most = max(1.0, float(np.ceil(values.max())))
        ticks = np.arange(int(most) + 1)
        names = [whole(10**tick) for tick in ticks.tolist()]
        if classes:
            name = say("lens.final_class_rank")
        elif above:
            name = say("lens.column_word_rank")
        else:
            name = say("lens.top_word_rank")
        bar = style.colour_bar(
            name,
            tickvals=ticks.tolist(),
            ticktext=names,
            **_BAR,
        )
        what = say("lens.log_rank")
    else:
        values, most = lens.divergence, float(lens.divergence.max()) or 1.0
        bar, what = style.colour_bar(say("lens.kl_from_prediction"), **_BAR), say("lens.kl_from_last")
    trace = parts.heatmap(
        values.astype(np.float32),
        hover=style.lines(hover, what),
        bar=bar,
        maximum=most,
        xgap=2,
        ygap=2,
        text=_candidates(lens),
        customdata=np.tile([style.escape(word) for word in lens.followed_words], (len(lens.steps), 1)),
    )
    shares = values / most
    if colour != "probability":  # bright = close to the prediction in any measure
        trace["colorscale"] = style.colour_scale(style.SEQUENTIAL[::-1])
        shares = 1 - shares
    return trace, shares


def _candidates(lens: Lens) -> list[list[str]]:
    """Return, for the hover, the most likely words of each cell with their probabilities, one per line."""
    return [
        [
            "<br>".join(
                f"{style.escape(lens.pieces[int(id)])}  {p:.9g}"
                for id, p in zip(lens.ids[step, position], lens.probabilities[step, position], strict=True)
            )
            for position in range(len(lens.read))
        ]
        for step in range(len(lens.steps))
    ]


def word_probabilities(course: WordProbabilities) -> go.Figure:
    """Draw the probabilities of the followed word and of its strongest alternatives, step by step."""
    figure = Sheet()
    names = ["lens.final_token", "lens.runner_up"] + ["lens.earlier_first"] * (len(course.words) - 2)
    colours = [style.CHOSEN, style.BAR, *(style.CATEGORICAL[place] for place in (1, 2, 3, 4, 7))]
    for index in reversed(range(len(course.words))):
        label = style.escape(course.words[index])
        figure.scatter(
            x=np.arange(len(course.steps)),
            y=course.probabilities[index].astype(np.float32),
            mode="lines+markers",
            name=say(names[index], token=label),
            line={
                "color": colours[index % len(colours)],
                "width": 5 if index == 0 else 3,
                "dash": "solid" if index < 2 else "dot",
            },
            marker={"size": 10 if index == 0 else 7},
            hovertemplate=style.hover(say("lens.token_after", token=label, place="%{x}"), style.exact("y")),
        )
    style.finish(figure, height=360, top=48)
    figure.update_layout(legend={"traceorder": "reversed"})
    figure.update_xaxes(**style.label_axis([localize(step) for step in course.steps], title=say("lens.read_after")))
    figure.update_yaxes(title_text=say("names.probability"), range=[-0.03, 1.03])
    return figure.drawn()


def _short(word: str, longest: int = LONGEST) -> str:
    """Return a word as it fits into a cell, without the dot that stands for its space."""
    word = word.removeprefix("·") or word
    return word if len(word) <= longest else f"{word[: longest - 1]}…"
