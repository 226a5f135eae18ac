"""The content of a checkpoint: four numbers, its card, its parameters and its configuration."""

import pandas as pd
import streamlit as st

from charts.toolkit.numbers import number, percent, whole
from charts.toolkit.words import localize
from transformer.files.packaged_models import known_model
from transformer.files.received_files import is_received
from ui.compute.store import store
from ui.page.page import Page
from ui.show.figures import show_figure, show_table
from ui.words.texts import without_pictures
from views.checkpoint.checkpoint_view_model import CheckpointViewModel
from views.checkpoint.parameter_shares_figure import parameter_shares


def show_sizes(p: Page, view_model: CheckpointViewModel) -> None:
    """Show how large the checkpoint is, and its fingerprint."""
    text, checkpoint = p.text, view_model.checkpoint
    with st.container(horizontal=True, gap="large"):  # columns would cut off the numbers in a narrow window
        st.metric(text["parameters"], whole(view_model.n_parameters), width="content")
        if view_model.vocabulary_size is not None:
            st.metric(text["vocabulary"], whole(view_model.vocabulary_size), width="content")
        st.metric(text["size"], number(f"{view_model.megabytes:.1f}") + " MB", width="content")
        help = text["fingerprint_help"].format(whole=checkpoint.fingerprint)
        st.metric(text["fingerprint"], checkpoint.short_fingerprint, help=help, width="content")
    if view_model.in_memory is not None:
        type, held, wide = view_model.in_memory
        st.caption(text["in_memory"].format(type=type, held=number(f"{held:.1f}"), wide=number(f"{wide:.1f}")))


def show_shares(p: Page, view_model: CheckpointViewModel) -> None:
    """Draw the distribution of the trained numbers over the parts of the model."""
    shares = view_model.shares
    names = list(map(localize, shares))
    (part, share), (other, rest) = (*zip(names, shares.values(), strict=True), ("", 0.0))[:2]
    said = {"part": part, "share": percent(share / 100), "other": other, "rest": percent(rest / 100)}
    st.markdown(p.text["shares" if other else "shares_one"].format(**said))
    show_figure(
        parameter_shares(list(shares.values()), names=names),
        name="parameter-shares",
        caption="",
        alt=p.text["shares_alt"],
    )


def show_card(p: Page, view_model: CheckpointViewModel) -> None:
    """Show the model card; as plain text if its Markdown could load images from another server."""
    text, checkpoint, received = p.text, view_model.checkpoint, is_received(p.focus.checkpoint)
    if received or (checkpoint.is_guest and known_model(checkpoint.path) is None):
        st.caption(text["received" if received else "guest_card"])
        st.code(checkpoint.card or text["no_card"], language=None, wrap_lines=True)
    else:
        st.markdown(without_pictures(checkpoint.card) or text["no_card"])


def show_parameters(p: Page, view_model: CheckpointViewModel) -> None:
    """List every parameter."""
    rows = [
        {
            "name": row.name,
            "shape": " × ".join(map(str, row.shape)),
            "numbers": row.numbers,
            "mean": row.mean,
            "std": row.std,
            "largest": row.largest,
        }
        for row in store.get(view_model.checkpoint, "parameters", view_model.parameters)
    ]
    show_table(pd.DataFrame(rows), name="parameters", height=520, caption=p.text["weights_caption"])


def show_settings(p: Page, view_model: CheckpointViewModel) -> None:
    """List the configuration."""
    values = view_model.settings
    show_table(pd.DataFrame({"field": values.keys(), "value": values.values()}), name="config", height=560)
