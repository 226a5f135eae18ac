"""One row of a map as a sentence whose words are coloured by their weights."""

import math

import numpy as np

from charts.toolkit.shades import colour_at, ink
from charts.toolkit.style import SEQUENTIAL, three_digits
from transformer.runs.attention_view import AttentionView
from ui.page.page import Page
from ui.shell.events import heard, whole_number
from ui.shell.picture import picture_address
from ui.shell.strip import choose_token
from ui.shell.token_rows import token_rows
from ui.words.texts import PageText, label_in_words, plain_word
from views.attention.attention_view_model import AttentionViewModel

_FROM, _LEAST = 3, 0.005  # how many of the words that attend to a word are named, and their smallest weight
_KEY = "attention shaded sentence"
# Sizes of the sentence above a map, in pixels of a projector: numbers below it, line height, letter width, line width.
_AROUND, _LINE, _LETTER, _ACROSS, _MAX_LINES = 36, 28, 8.0, 900, 2


def shaded_sentence(p: Page, shown: AttentionViewModel) -> None:
    """Draw the row as a sentence. In self-attention, a click on a word focuses it.

    For a model that reads images, the words are patches, on the image itself.
    """
    data = shaded(
        p.text,
        shown.drawn,
        row=shown.row,
        name=shown.row_label,
        limit=shown.limit,
        drawing=shown.choices.drawing,
        wide=(shown.is_wide or shown.cell is not None) and not p.reads_pictures,
    )
    if p.reads_pictures:
        across, patches = p.checkpoint.tokenizer.per_row, shown.view.key.patches
        picture = {"picture": picture_address(p.sentence, p.checkpoint.config), "across": across}
        data["picture"] = picture | {"down": len(patches) // across}
        for number, place in enumerate(patches):
            data["words"][place]["patch"] = number
        if p.checkpoint.config.n_classes and shown.view.query.is_class_token(shown.row):
            data["hint"] = f"{p.text['class_token_why']} {data['hint']}"
    token_rows(key=_KEY, data=_rows(data), on_chosen_change=_chosen)


def shaded(text: PageText, view: AttentionView, *, row: int, name: str, limit: float, drawing: str, wide: bool) -> dict:
    """Return the data of the component: plain text, which it inserts with ``textContent``."""
    weights, allowed = view.weights[0, row], view.allowed[row]
    rows_are_queries = name == view.query.labels[row] and drawing not in ("values", "rollout")
    words = []
    for token, label, weight, seen in zip(view.key, view.key.labels, weights, allowed, strict=True):
        share = min(1.0, float(weight) / limit) if limit > 0 else 0.0
        says = text["shaded_word"].format(word=label_in_words(label), share=three_digits(float(weight)))
        by = _strongest(view, token.index) if rows_are_queries else []
        apart = token.display.startswith("·") or token.special
        words.append(
            {
                "text": token.display.removeprefix("·") or token.display,
                "apart": apart or (bool(words) and view.key[token.index - 1].special),
                "ground": colour_at(share, colours=SEQUENTIAL) if seen else "",
                "ink": ink(share, colours=SEQUENTIAL) if seen else "",
                "says": says if seen else text["shaded_masked"].format(word=label_in_words(label)),
                "by": text["shaded_by"].format(words=", ".join(by)) if by else "",
            }
        )
    same = view.kind == "self"
    title = f"shaded_{drawing}" if drawing in ("values", "rollout") else "shaded"
    title = title if name == view.query.labels[row] else f"{title}_predicted"
    return {
        "title": text[title].format(row=plain_word(name)),
        "words": words,
        "followed": row if same else None,
        "clickable": same,
        "hint": text["shaded_hint" if same else "shaded_hint_cross"],
        "wide": wide,
    }


def _rows(drawn: dict) -> dict:
    """Return the sentence as the one row of ``token_rows``."""
    tokens = [
        {
            **{name: word[name] for name in ("text", "ground", "ink", "patch") if name in word},
            "kind": " ".join(
                name
                for name, is_so in (
                    ("apart", word["apart"] and place),
                    ("followed", place == drawn["followed"]),
                    ("masked", not word["ground"]),
                )
                if is_so
            ),
            "name": word["says"],
            "says": word["says"] + word["by"],
            "sends": place,
        }
        for place, word in enumerate(drawn["words"])
    ]
    row = {"title": drawn["title"], "tokens": tokens, "chosen": drawn["followed"], "clickable": drawn["clickable"]}
    row |= drawn.get("picture", {})
    return {"look": "shaded", "rows": [row], "hint": drawn["hint"], "wide": drawn["wide"]}


def _strongest(view: AttentionView, key: int) -> list[str]:
    """Return the words that attend most to one word, with their weights."""
    column = np.where(view.allowed[:, key] & (view.allowed.sum(axis=1) > 1), view.weights[0, :, key], 0.0)
    rows = [row for row in np.argsort(-column, kind="stable")[:_FROM].tolist() if column[row] >= _LEAST]
    return [f"{label_in_words(view.query.labels[row])} {three_digits(float(column[row]))}" for row in rows]


def height_above(view: AttentionView) -> int:
    """Return how many pixels of a map's height a sentence above it takes, on a projector."""
    letters = sum(len(token.display) * _LETTER + 12 for token in view.key)
    return _AROUND + _LINE * min(_MAX_LINES, math.ceil(letters / _ACROSS))


def _chosen() -> None:
    token = whole_number(heard(_KEY, "chosen"))
    if token is not None:
        choose_token(token)
