"""Which source word each translated word looked at, as a map and as a table."""

from collections import defaultdict

import numpy as np
import pandas as pd
import streamlit as st

from charts.toolkit.style import three_digits
from transformer.errors import CheckpointError
from transformer.files.checkpoints import Checkpoint
from transformer.heads.role_files import load_corpus_roles
from transformer.predictions.word_alignment import WordAlignment, align
from transformer.text.message import N_
from ui.compute.store import store
from ui.shell import choice
from ui.shell.page import Page
from ui.show.figures import show_figure, show_formula, show_snippet, show_table
from ui.words.texts import as_plain, in_code
from views.decoding.alignment_figure import alignment_heatmap
from views.decoding.attention_choice import choose, choose_heads, of_heads, settle


def alignment(p: Page) -> None:
    """The words of the answer beside the words of the source."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        layer, own = _choose_layer(p)
        head = choose_heads(p)
        when = choose(p, "when", ["written", "read"], "when")
        tokens = dict.fromkeys(token.display for token in p.trace.source if token.special and token.role != "pad")
        named = " ".join(tokens) or "–"
        specials = choice.toggle(
            p.text["specials"].format(tokens=as_plain(named)), key="align specials", help=p.text["specials_help"]
        )
    settle(*(["layer"] if own else []), *(["head"] if head is not None else []))
    found = align(p.trace, layer=layer, head=head, when=when)
    best = found.best(specials=specials)
    target, source = [word.text for word in found.target], [word.text for word in found.source]
    of = of_heads(p, layer=layer, head=head)
    among = "" if specials else p.text["alignment_among"].format(tokens=in_code(named))
    show_figure(
        alignment_heatmap(found.weights, target=target, source=source, best=best, row=p.text[f"when_row_{when}"]),
        name="word-alignment",
        caption=p.text["alignment_caption"].format(of=of, pieces=len(p.trace.target), words=len(target), among=among),
        alt=p.text["alignment_alt"],
    )
    show_table(_table(found, best), name="word-alignment-table", caption=p.text["alignment_table"].format(among=among))
    st.caption(p.text["alignment_caution"])
    _formula(p, found)
    place = int(np.argmax([word.end - word.start for word in found.target]))
    show_snippet(
        "alignment",
        f"{p.preamble}from transformer.predictions.word_alignment import align\n\n"
        f"found = align(trace, layer={layer}, head={head}, when={when!r})\n"
        f"best = found.best(specials={specials})\n"
        "print([(target.text, found.source[j].text) for target, j in zip(found.target, best)])\n"
        f"print(found.weights[{place}, best[{place}]])  # {found.weights[place, best[place]]:.7g}\n",
    )


def _choose_layer(p: Page) -> tuple[int, bool]:
    """The layer whose heads align best over many sentences, as far as that is known, or the one of the sidebar; and
    whether it is that one."""
    best = store.get(p.checkpoint, "best alignment", lambda: (best_alignment(p.checkpoint),))[0]
    if best is None or choose(p, "alignment_layer", ["best", "chosen"], "layer") == "chosen":
        return p.focus.layer, True
    return best, False


def best_alignment(checkpoint: Checkpoint) -> int | None:
    """Of the layers whose cross-attention was measured (``head_roles.json``) the one that moves through the source
    most steadily, by the mean of its heads; ``None`` where nothing was measured."""
    try:
        saved = load_corpus_roles(checkpoint)
    except CheckpointError:  # of other weights or definitions; the page of heads says so
        return None
    layers = defaultdict(list)
    for role in saved.roles.of("decoder", "cross") if saved else ():
        layers[role.layer].append(role.scores["monotone"])
    steady = {layer: float(np.nanmean(scores)) for layer, scores in layers.items()}
    return max(steady, key=steady.__getitem__, default=None)


def _table(found: WordAlignment, best: np.ndarray) -> pd.DataFrame:
    """Each word of the answer with its source word and the second one."""
    rows = []
    for place, word in enumerate(found.target):
        weights = found.weights[place]
        others = [column for column in np.argsort(-weights, kind="stable") if column != best[place]]
        second = others[0] if others else None
        rows.append(
            {
                N_("word of the answer"): word.text,
                N_("source word"): found.source[best[place]].text,
                N_("weight"): float(weights[best[place]]),
                N_("next"): "" if second is None else found.source[second].text,
                N_("its weight"): 0.0 if second is None else float(weights[second]),
                N_("entropy in bits"): float(found.entropy[place]),
                N_("pieces"): word.end - word.start,
            }
        )
    return pd.DataFrame(rows)


def _formula(p: Page, found: WordAlignment) -> None:
    """The formula with its shapes; the example is the word of the answer with the most pieces."""
    word = max(found.target, key=lambda each: each.end - each.start)
    show_formula(
        p.text["alignment_formula"],
        caption=p.text["alignment_formula_caption"].format(
            queries=len(p.trace.target),
            keys=len(p.trace.source),
            rows=len(found.target),
            columns=len(found.source),
            word=as_plain(word.text),
            pieces=word.end - word.start,
            sum=three_digits(float(found.weights[0].sum())),
        ),
    )
