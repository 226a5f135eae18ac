"""Checkpoint: what is in the file?"""

from dataclasses import asdict

import pandas as pd
import streamlit as st

from charts.toolkit.numbers import number, whole
from transformer.config import PictureConfig
from transformer.families.foreign_folder import stored_files
from transformer.files.checkpoints import WEIGHTS, load
from transformer.files.received_files import is_received
from transformer.layers.costs import parameter_statistics
from transformer.text.message import N_
from ui.compute.store import store
from ui.shell.choice import tabs
from ui.shell.page import page
from ui.show.figures import show_source, show_table
from ui.words.texts import without_pictures
from views.checkpoint.family_view import family_view
from views.checkpoint.upload_form import upload_form

with page("checkpoint", strip=False) as p:
    config, model = p.checkpoint.config, p.checkpoint.model
    files = stored_files(p.checkpoint.path) if p.checkpoint.foreign else [p.checkpoint.path / WEIGHTS]
    megabytes = sum(file.stat().st_size for file in files) / 1e6
    with st.container(horizontal=True, gap="large"):  # columns would cut the numbers in a narrow window
        st.metric(p.text["parameters"], whole(model.n_parameters), width="content")
        if not isinstance(config, PictureConfig):  # there it counts the patches that are possible
            st.metric(p.text["vocabulary"], whole(config.vocabulary_size), width="content")
        st.metric(p.text["size"], number(f"{megabytes:.1f}") + " MB", width="content")
        st.metric(
            p.text["fingerprint"],
            p.checkpoint.short_fingerprint,
            help=p.text["fingerprint_help"].format(whole=p.checkpoint.fingerprint),
            width="content",
        )
    upload_form(p)

    names = (("family",) if p.checkpoint.foreign else ()) + ("card", "weights", "settings")
    *family, card, weights, settings = tabs(p.text, names, key="checkpoint view")
    for tab in family:
        with tab:
            family_view(p)
    with card:
        if is_received(p.focus.checkpoint) or p.checkpoint.foreign:  # their Markdown could fetch pictures from anywhere
            st.caption(p.text["received" if is_received(p.focus.checkpoint) else "foreign_card"])
            st.code(p.checkpoint.card or p.text["no_card"], language=None, wrap_lines=True)
        else:
            st.markdown(without_pictures(p.checkpoint.card) or p.text["no_card"])
    with weights:
        found = store.get(p.checkpoint, "parameters", lambda: tuple(parameter_statistics(model)))
        rows = [
            {
                N_("name"): row.name,
                N_("shape"): " × ".join(map(str, row.shape)),
                N_("numbers"): row.numbers,
                N_("mean"): row.mean,
                N_("std"): row.std,
                N_("largest"): row.largest,
            }
            for row in found
        ]
        show_table(pd.DataFrame(rows), name="parameters", height=520, caption=p.text["weights_caption"])
    with settings:
        values = {name: str(value) for name, value in asdict(config).items()}
        show_table(pd.DataFrame({N_("field"): values.keys(), N_("value"): values.values()}), name="config", height=560)
    show_source(type(config), load)
