"""The grid of the logit lens: the prediction after each layer at each position."""

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
    from transformer.predictions.lens import Lens

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
    """Return the width in pixels at which the words of a grid fit into their cells."""
    longest = max(len(_short(word)) for row in lens.words for word in row)
    return round(len(lens.read) * max(_LEAST, _LETTER * longest + 3)) + _NAMES


def middle_of(lens: Lens, column: int) -> float:
    """Return where the middle of a column is in a grid of ``room_of`` pixels, 0…1."""
    room = room_of(lens)
    return (_NAMES + (room - _NAMES) * (column + 0.5) / len(lens.read)) / room


def narrow_part(lens: Lens, column: int) -> tuple[Lens, int]:
    """Return the columns around ``column`` that fit on a phone, and its index among them."""
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
        is_narrow: Whether the grid has to fit on a phone; the axes then have no titles.
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
            line = {"color": style.CHOSEN, "width": 4 if position == selected else 2}
            figure.add_box((position - 0.48, position + 0.48), (int(step) - 0.46, int(step) + 0.46), line=line)
    if other:
        for position, word in enumerate(lens.followed_words):
            figure.add_annotation(
                text=f"<b>{style.escape(_short(word))}</b>", x=position, y=n_steps - 0.5, yanchor="bottom", yshift=2
            )
    if selected is not None:
        line = {"color": style.NEUTRAL, "width": 3, "dash": "dot"}
        figure.add_box((selected - 0.5, selected + 0.5), (-0.5, n_steps - 0.5), name="focus", line=line)
    if is_narrow:
        trace["colorbar"] |= {"len": 190, "title": {"text": ""}}
        figure.update_xaxes(title_text="")
        figure.update_yaxes(title_text="")
    return figure.drawn()


def _cells(lens: Lens, colour: str, *, above: bool) -> tuple[dict, np.ndarray]:
    """Return the heatmap, and the position of each cell on the colour scale (0…1).

    With ``above``, the followed words are above the grid, otherwise in its top row.
    """
    classes, word, ticks = lens.of_classes, "%{customdata}", {}
    followed = say("lens.followed_class", word=word) if classes else say("lens.followed_word", word=word)
    if colour == "probability":
        values, most, what = lens.probability, 1.0, say("lens.its_probability")
        names = (
            say("lens.final_class_probability"),
            say("lens.column_word_probability"),
            say("lens.top_word_probability"),
        )
    elif colour == "rank":
        values, what = np.log10(lens.rank), say("lens.log_rank")
        names = say("lens.final_class_rank"), say("lens.column_word_rank"), say("lens.top_word_rank")
        most = max(1.0, float(np.ceil(values.max())))
        powers = list(range(int(most) + 1))
        ticks = {"tickvals": powers, "ticktext": [whole(10**power) for power in powers]}
    elif lens.divergence is None:
        raise ValueError("this lens has no divergence; read it with logit_lens(…, spread=True)")
    else:
        values, most, what = lens.divergence, float(lens.divergence.max()) or 1.0, say("lens.kl_from_last")
        names = (say("lens.kl_from_prediction"),) * 3
    trace = parts.heatmap(
        values.astype(np.float32),
        hover=style.lines(say("lens.after_step", step="%{y}", token="%{x}"), "%{text}", followed, what),
        bar=style.colour_bar(names[0 if classes else 1 if above else 2], **ticks, **_BAR),
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

    def listed(ids: np.ndarray, probabilities: np.ndarray) -> str:
        pairs = zip(ids, probabilities, strict=True)
        return style.lines(*(f"{style.escape(lens.pieces[int(id)])}  {p:.9g}" for id, p in pairs))

    steps = zip(lens.ids, lens.probabilities, strict=True)
    return [[listed(*cell) for cell in zip(*step, strict=True)] for step in steps]


def _short(word: str, longest: int = LONGEST) -> str:
    """Return a word as it fits into a cell, without the dot that stands for its space."""
    return style.shorten(word.removeprefix("·") or word, longest)
