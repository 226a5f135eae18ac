"""The source word that each translated word attends to, as a map and as a table."""

import pandas as pd
import streamlit as st

from charts.toolkit.style import three_digits
from ui.page.page import Page
from ui.shell import choice
from ui.show.figures import show_figure, show_formula, show_snippet, show_table
from ui.words.texts import as_plain, in_code
from views.decoding import decoding_figures
from views.decoding.decoding_parts import best_layer, choose, choose_heads, location_of, of_heads
from views.decoding.decoding_view_model import AlignedWords, DecodingChoices, special_tokens


def alignment(p: Page) -> None:
    """Draw the words of the output against the words of the source."""
    best = best_layer(p)
    shown = AlignedWords(p.run, location_of(p), _choose(p, layer=best is not None), p.trace, best)
    target, source = [word.text for word in shown.found.target], [word.text for word in shown.found.source]
    among = "" if shown.choices.specials else p.text["alignment_among"].format(tokens=in_code(shown.specials))
    show_figure(
        decoding_figures.alignment_heatmap(
            shown.found.weights,
            target=target,
            source=source,
            best=shown.best,
            row=p.text[f"when_row_{shown.choices.when}"],
        ),
        name="word-alignment",
        caption=p.text["alignment_caption"].format(
            of=of_heads(p, shown), pieces=len(shown.trace.target), words=len(target), among=among
        ),
        alt=p.text["alignment_alt"],
    )
    show_table(_table(shown), name="word-alignment-table", caption=p.text["alignment_table"].format(among=among))
    st.caption(p.text["alignment_caution"])
    _show_formula(p, shown)
    _show_snippet(p, shown)


def _choose(p: Page, *, layer: bool) -> DecodingChoices:
    """Draw the choice of layer and heads; ``layer``: whether there is a best layer to choose."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = {"alignment_layer": choose(p, "alignment_layer", ("best", "chosen"), "layer")} if layer else {}
        one_head = choose_heads(p)
        when = choose(p, "when", ("written", "read"), "when")
        tokens = as_plain(special_tokens(p.trace))
        label = p.text["specials"].format(tokens=tokens)
        specials = choice.toggle(label, key="align specials", help=p.text["specials_help"])
    return DecodingChoices(one_head=one_head, when=when, specials=specials, **chosen)


def _table(shown: AlignedWords) -> pd.DataFrame:
    """List each word of the output with its first and second source word."""
    rows, found, entropy = [], shown.found, shown.found.entropy
    for place, (word, best, second) in enumerate(zip(found.target, shown.best, shown.second, strict=True)):
        weights = found.weights[place]
        rows.append(
            {
                "word of the output": word.text,
                "source word": found.source[best].text,
                "weight": float(weights[best]),
                "next": "" if second is None else found.source[second].text,
                "its weight": 0.0 if second is None else float(weights[second]),
                "entropy in bits": float(entropy[place]),
                "pieces": word.end - word.start,
            }
        )
    return pd.DataFrame(rows)


def _show_formula(p: Page, shown: AlignedWords) -> None:
    """Write the formula with its shapes; the example is the word of the output with the most tokens."""
    word = shown.found.target[shown.longest]
    show_formula(
        p.text["alignment_formula"],
        caption=p.text["alignment_formula_caption"].format(
            queries=len(shown.trace.target),
            keys=len(shown.trace.source),
            rows=len(shown.found.target),
            columns=len(shown.found.source),
            word=as_plain(word.text),
            pieces=word.end - word.start,
            sum=three_digits(float(shown.found.weights[0].sum())),
        ),
    )


def _show_snippet(p: Page, shown: AlignedWords) -> None:
    row, best = shown.longest, shown.best
    show_snippet(
        "alignment",
        f"{p.preamble}from transformer.predictions.word_alignment import align\n\n"
        f"found = align(trace, layer={shown.layer}, head={shown.head}, when={shown.choices.when!r})\n"
        f"best = found.best(specials={shown.choices.specials})\n"
        "print([(target.text, found.source[j].text) for target, j in zip(found.target, best)])\n"
        f"print(found.weights[{row}, best[{row}]])  # {shown.found.weights[row, best[row]]:.7g}\n",
    )
