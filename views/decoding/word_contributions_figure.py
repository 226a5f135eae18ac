"""What each word of a sentence contributes to the probability of a class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import _


def word_contributions(contributions: Any, *, words: Sequence[str], of: str) -> go.Figure:
    """One bar a word, in the order of the sentence: what the probability of the class ``of`` loses without the word.

    ``contributions``: [word], p(of | all words) − p(of | all but this one), −1…1; ``words``: their texts.
    """
    values = as_array(contributions, name="contributions", axes=("word",), sizes={"word": len(words)})
    if np.nanmax(np.abs(values)) > 1 + 1e-4:
        raise ValueError(
            f"contributions hold {style.three_digits(float(values[np.abs(values).argmax()]))}; "
            f"a difference of two probabilities lies in −1…1"
        )
    figure = Sheet()
    hover = style.hover(
        _("{token} (word {place})", token="%{x}", place="%{x:d}"), _("contributes {value}", value=style.exact("y"))
    )
    figure.bar(**parts.token_bars(values, hover=hover, colours=parts.signed_colours(values)))
    style.finish(figure, height=340, top=32)
    figure.update_layout(uniformtext=parts.NUMBERS_ALIKE)
    figure.update_xaxes(**style.label_axis(words, title=_("word that is left out")))
    figure.update_yaxes(title_text=_("change of p({name})", name=style.escape(of)), range=parts.room(values))
    return figure.drawn()
