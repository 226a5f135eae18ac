"""The beam search as a tree, with the texts that it returned and those that it dropped."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from charts.toolkit.numbers import whole
from transformer.predictions.hypothesis_tree import FINISHED, PRUNED, BeamTree
from transformer.predictions.hypothesis_tree import beam_tree as record_search
from transformer.runs.decoding_strategies import Beam, length_penalty
from transformer.text.message import N_
from ui.compute.jobs import jobs
from ui.shell import choice
from ui.shell.fragments import fragment
from ui.shell.page import Page, guard
from ui.show.figures import show_figure, show_snippet, show_table
from ui.words.texts import as_plain, common, in_code
from views.decoding import generation
from views.decoding.beam_tree_figure import COLUMN, search_tree
from views.decoding.strategies import choose_beam

STEPS = 12  # that fit on a screen


def searched(p: Page, beam: Beam) -> BeamTree | None:
    """``None`` if the reader has stopped it."""
    run, forced = replace(p.run, target=None, strategy=beam), generation.given(p)
    return jobs.result(
        run,
        ("beam search", forced),
        lambda _: record_search(run.checkpoint, run.sentence, beam, forced=forced, source_pads=run.source_pads),
        doing=common("wait.search"),
    )


@fragment
def beam_tree(p: Page) -> None:
    """The tree, what to read from it, and the texts that the search returned."""
    with guard():
        columns = st.container(key="beam controls").columns([2, 1, 1])
        with columns[0]:
            beam = choose_beam(p)
        with columns[1]:
            pruned = choice.slider(p.text["pruned"], 0, 5, 2, 1, key="pruned", help=p.text["pruned_help"])
        tree = searched(p, beam)
        if tree is None:
            return
        with columns[2]:
            first, window = _window(p, tree)
        show_figure(
            search_tree(tree, first=first, n_steps=STEPS, pruned=pruned),
            name="beam-tree",
            caption=window + p.text["tree_caption"].format(width=beam.width),
            alt=p.text["tree_alt"],
            room=COLUMN * min(STEPS, tree.n_steps) + 40,
        )
        st.markdown(_story(p, tree))
        show_table(_returned(tree), name="beam-texts", caption=p.text["tree_table"])
        best = tree.hypotheses[0]
        generation.show_score(p, best.log_probability, len(best.ids), beam.length_penalty)
        _snippet(p, beam, tree)


def _window(p: Page, tree: BeamTree) -> tuple[int, str]:
    """The first step that is drawn; a long search shows in a window, and a sentence says which steps it has."""
    if tree.n_steps <= STEPS:
        return 1, ""
    last = tree.n_steps - STEPS + 1
    first = int(choice.slider(p.text["window"], 1, last, 1, 1, key="first step", owner=tree.n_steps))
    return first, p.text["window_caption"].format(first=first, last=first + STEPS - 1, count=tree.n_steps) + " "


def _story(p: Page, tree: BeamTree) -> str:
    """How much the search looked at, and how close it came to pruning the answer."""
    words = [node for node in tree.winner if node.fate != FINISHED and node.step > tree.n_forced]
    story = p.text["tree_counts"].format(
        count=whole(len(tree.nodes)),
        pruned=whole(sum(node.fate == PRUNED for node in tree.nodes)),
        finished=whole(sum(node.fate == FINISHED for node in tree.nodes)),
        steps=tree.n_steps,
        end=in_code(generation.end_of(p)),
    )
    worst = max(words, key=lambda node: node.rank, default=None)
    if worst is None:
        return story
    if worst.rank == 1:
        return f"{story} {p.text['tree_always_first']}"
    return f"{story} " + p.text["tree_behind"].format(rank=worst.rank, step=worst.step, word=as_plain(worst.display))


def _returned(tree: BeamTree) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                N_("place"): place,
                N_("text"): text.text,
                N_("tokens"): len(text.ids),
                N_("Σ log p"): text.log_probability,
                N_("length penalty"): length_penalty(len(text.ids), tree.strategy.length_penalty),
                N_("score"): text.score,
                N_("finished"): text.finished,
            }
            for place, text in enumerate(tree.hypotheses, start=1)
        ]
    )


def _snippet(p: Page, beam: Beam, tree: BeamTree) -> None:
    end = tree.winner[-1]
    show_snippet(
        "beam tree",
        "import transformer\nfrom views.decoding.beam_tree_figure import search_tree\n"
        "from transformer.predictions.hypothesis_tree import beam_tree\n\n"
        f"{p.load_line}"
        f"tree = beam_tree(checkpoint, {generation.arguments_of(p, beam)})\n"
        "print([node.display for node in tree.winner], tree.winner[-1].score)"
        f"  # {end.score:.7g}\n"
        'print([(node.display, node.rank, node.total) for node in tree.at(1) if node.fate == "pruned"])\n'
        "figure = search_tree(tree)  # figure.show() draws it\n",
    )
