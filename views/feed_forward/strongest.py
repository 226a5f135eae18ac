"""The strongest units of the token in focus, and the words that they promote."""

from charts.toolkit.style import three_digits
from ui.page.page import Page
from ui.show.figures import show_figure, show_snippet
from ui.words.texts import as_plain
from views.feed_forward.feed_forward_view_model import FeedForwardViewModel
from views.feed_forward.unit_figures import line_of, units_and_words

SHOWN = 8  # units
_WORDS = 4


def strongest(p: Page, view_model: FeedForwardViewModel) -> None:
    """Draw one row for each of the strongest units."""
    text, units = p.text, view_model.strongest[:SHOWN]
    words = ()
    if view_model.why_no_words is None:
        words = view_model.words[:SHOWN]
    kind = "none" if not words else "logits" if words[0].logits else "towards"
    if words:
        lines = [line_of([word.piece for word in one.up if not _is_bytes(word.piece)][:_WORDS]) for one in words]
    else:
        lines = [text["adds"].format(length=three_digits(length)) for length in view_model.added_lengths(units)]
    token = as_plain(view_model.focused.display)
    to = text["to_classes" if view_model.checkpoint.config.n_classes else "to_decoder"]
    caption = text[f"units_caption_{kind}"].format(token=token, to=to)
    if any(_is_bytes(word.piece) for one in words for word in one.up[:_WORDS]):
        caption += f" {text['units_bytes']}"
    show_figure(
        units_and_words(
            view_model.hidden[:, list(units)].T,
            tokens=view_model.tokens,
            followed=view_model.token,
            units=[text["unit_number"].format(unit=unit) for unit in units],
            words=lines,
            value=text["hidden_value"],
        ),
        name="strongest-units-of-a-token",
        caption=caption,
        alt=text["units_alt"].format(token=token),
    )
    show_snippet("strongest", p.preamble + _snippet(view_model, with_words=bool(words)))


def _is_bytes(piece: str) -> bool:
    """Return whether a displayed piece is part of a character, hence not readable."""
    return "⟨" in piece


def _snippet(view_model: FeedForwardViewModel, *, with_words: bool) -> str:
    place = ", ".join(map(repr, (view_model.stack, view_model.layer, view_model.token)))
    more = f'print(trace.values("{view_model.name}.hidden")[:, list(units)])  # [token, unit]\n'
    if with_words:
        more = (
            f"for one in unit_words(trace, {place}, units=units, words={_WORDS}):\n"
            "    print(one.unit, one.hidden, [(word.piece, word.effect) for word in one.up])\n"
        )
    return (
        "from transformer.layers.feed_forward_units import strongest_units, unit_words\n\n"
        f"units = strongest_units(trace, {place}, count={SHOWN})\n{more}"
    )
