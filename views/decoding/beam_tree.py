"""The beam search as a tree, with the texts that it returned and those that it pruned."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from charts.toolkit.numbers import whole
from transformer.predictions.hypothesis_tree import BeamTree
from transformer.predictions.hypothesis_tree import beam_tree as record_search
from transformer.runs.decoding_strategies import Beam
from ui.compute.jobs import jobs
from ui.page.page import Page, guard
from ui.shell import choice
from ui.shell.fragments import fragment
from ui.show.figures import show_figure, show_snippet, show_table
from ui.words.texts import as_plain, common, in_code
from views.decoding.beam_tree_figure import COLUMN, search_tree
from views.decoding.decoding_parts import choose_beam, location_of, show_score
from views.decoding.decoding_view_model import STEPS_OF_TREE, DecodingChoices, SearchedTree, given_of


@fragment
def beam_tree(p: Page) -> None:
    """Draw the tree, how to read it, and the texts that the search returned."""
    with guard():
        columns = st.container(key="beam controls").columns([2, 1, 1])
        with columns[0]:
            chosen = choose_beam(p)
        with columns[1]:
            pruned = choice.slider(p.text["pruned"], 0, 5, 2, 1, key="pruned", help=p.text["pruned_help"])
        choices = DecodingChoices(**chosen, pruned=pruned)
        tree = searched(p, choices.beam)
        if tree is None:
            return
        shown = SearchedTree(p.run, location_of(p), choices, tree)
        if shown.first_steps > 1:
            with columns[2]:
                shown = replace(shown, choices=replace(choices, first_step=_choose_first(p, shown)))
        show_figure(
            search_tree(tree, first=shown.first, n_steps=STEPS_OF_TREE, pruned=pruned),
            name="beam-tree",
            caption=_window(p, shown) + p.text["tree_caption"].format(width=choices.beam_width),
            alt=p.text["tree_alt"],
            room=COLUMN * shown.n_drawn + 40,
        )
        st.markdown(_story(p, shown))
        show_table(_returned(shown), name="beam-texts", caption=p.text["tree_table"])
        show_score(p, shown, shown.numbers[0])
        _show_snippet(p, shown)


def searched(p: Page, beam: Beam) -> BeamTree | None:
    """Return the recorded search, or ``None`` if the reader has stopped it."""
    run, forced = replace(p.run, target=None, strategy=beam), given_of(p.run)
    return jobs.result(
        run,
        ("beam search", forced),
        lambda _: record_search(run.checkpoint, run.sentence, beam, forced=forced, source_pads=run.source_pads),
        doing=common("wait.search"),
    )


def _choose_first(p: Page, shown: SearchedTree) -> int:
    """Draw the slider for the first step shown of a long search."""
    steps = shown.tree.n_steps
    return int(choice.slider(p.text["window"], 1, shown.first_steps, 1, 1, key="first step", owner=steps))


def _window(p: Page, shown: SearchedTree) -> str:
    """State which steps of a long search are shown."""
    if shown.first_steps == 1:
        return ""
    last, count = shown.first + shown.n_drawn - 1, shown.tree.n_steps
    return p.text["window_caption"].format(first=shown.first, last=last, count=count) + " "


def _story(p: Page, shown: SearchedTree) -> str:
    """State how many branches the search expanded, and how close the output came to being pruned."""
    counts = {name: whole(number) for name, number in shown.counts.items()}
    story = p.text["tree_counts"].format(**counts, steps=shown.tree.n_steps, end=in_code(shown.end))
    if (lowest := shown.lowest) is None:
        return story
    if lowest.rank == 1:
        return f"{story} {p.text['tree_always_first']}"
    word = as_plain(lowest.display)
    return f"{story} " + p.text["tree_behind"].format(rank=lowest.rank, step=lowest.step, word=word)


def _returned(shown: SearchedTree) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "place": place,
                "text": text.text,
                "tokens": numbers.count,
                "Σ log p": numbers.total,
                "length penalty": numbers.penalty,
                "score": text.score,
                "finished": text.finished,
            }
            for place, (text, numbers) in enumerate(zip(shown.tree.hypotheses, shown.numbers, strict=True), start=1)
        ]
    )


def _show_snippet(p: Page, shown: SearchedTree) -> None:
    end = shown.tree.winner[-1]
    show_snippet(
        "beam tree",
        "import transformer\nfrom views.decoding.beam_tree_figure import search_tree\n"
        "from transformer.predictions.hypothesis_tree import beam_tree\n\n"
        f"{p.load_line}"
        f"tree = beam_tree(checkpoint, {shown.arguments_of(shown.choices.beam)})\n"
        "print([node.display for node in tree.winner], tree.winner[-1].score)"
        f"  # {end.score:.7g}\n"
        'print([(node.display, node.rank, node.total) for node in tree.at(1) if node.fate == "pruned"])\n'
        "figure = search_tree(tree)  # figure.show() draws it\n",
    )
