"""Edges on the Paths page: their estimate from one backward pass, and how good it is."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from charts.toolkit.numbers import percent
from charts.toolkit.style import three_digits
from transformer.attribution.attention_trust import spearman
from transformer.interventions.path_patching import path_patching
from transformer.runs.head_places import Head
from ui.compute.store import Name, store
from ui.lab import sweeps
from ui.shell import choice
from ui.shell.page import Page
from ui.show.figures import show_figure
from ui.words.texts import PageText, as_plain
from views.paths.edges_figure import estimated_against_measured
from views.paths.paths_view_model import PathsViewModel


def edge_claim(share: float, text: PageText, *, is_estimate: bool = False, **names: str) -> str:
    """Say what the strongest edge does; a negative ``share`` works against the original prediction."""
    key = f"edges_says{'_against' if share < 0 else ''}{'_estimate' if is_estimate else ''}"
    size = abs(share)  # single edges often have less than one percent
    said = f"< {percent(0.001, decimals=1)}" if size < 0.001 else percent(size, decimals=int(size < 0.1))
    return text[key].format(share=said, **{name: as_plain(value) for name, value in names.items()})


def check_estimate(
    p: Page,
    shown: PathsViewModel,
    receiver: Head,
    senders: Sequence[Head],
    guess: np.ndarray,
    *,
    names: Sequence[str],
    inputs: Sequence[str],
    name: Name,
) -> None:
    """Patch the edges with the largest estimates, and write both numbers.

    ``names`` are those of ``senders``; the result is stored as ``name``.
    """
    best = np.argsort(-np.abs(np.nan_to_num(guess)))[: sweeps.CHECKED]
    patched = [senders[index] for index in best]
    true = store.get(p.run, name, lambda: path_patching(shown.contrast, shown.turn, receiver, patched, inputs=inputs))
    pairs = [
        p.text["estimate_pair"].format(place=names[index], estimated=_share(guess[index]), measured=_share(share))
        for index, share in zip(best, true, strict=True)
    ]
    st.caption(p.text["edges_estimate"].format(count=len(guess), pairs="; ".join(pairs)))


def _share(value: float) -> str:
    return three_digits(float(value)) if np.isfinite(value) else "–"


def compare_with_estimate(p: Page, measured: np.ndarray, guess: np.ndarray, *, names: Sequence[str]) -> None:
    """Write how well the estimate ranks the edges, and draw one point per edge when the reader opens it."""
    known = np.isfinite(measured) & np.isfinite(guess)
    if known.sum() < 3:
        return
    st.caption(
        p.text["edges_agreement"].format(
            agreement=three_digits(spearman(guess[known], measured[known])),
            error=three_digits(float(np.abs(guess - measured)[known].mean())),
            largest=three_digits(float(np.abs(measured[known]).max())),
        )
    )
    with choice.collapsible(p.text["edges_compared"], icon=":material/scatter_plot:", key="paths_edges") as opened:
        if opened.open:
            show_figure(
                estimated_against_measured(measured, estimated=guess, labels=names),
                name="edges-estimated-and-measured",
                caption=p.text["edges_compared_caption"],
                alt=p.text["edges_compared"],
            )
