"""Checkpoint: what is in the file?"""

from __future__ import annotations

from dataclasses import asdict

import pandas as pd
import streamlit as st

from transformer.checkpoint import load
from ui import page
from ui.computed import parameter_statistics
from ui.loading import checkpoints_folder
from ui.show import show_source, show_table

with page("checkpoint", strip=False) as p:
    config, model = p.checkpoint.config, p.checkpoint.model
    megabytes = (checkpoints_folder() / p.checkpoint.name / "model.safetensors").stat().st_size / 1e6
    columns = st.columns([4, 3, 4, 6])  # the fingerprint is the longest
    columns[0].metric(p.text["parameters"], f"{model.n_parameters:,}")
    columns[1].metric(p.text["vocabulary"], f"{config.vocabulary_size:,}")
    columns[2].metric(p.text["size"], f"{megabytes:.1f} MB")
    columns[3].metric(p.text["fingerprint"], p.checkpoint.fingerprint, help=p.text["fingerprint_help"])

    card, weights, settings = st.tabs([p.text["card"], p.text["weights"], p.text["settings"]])
    with card:
        st.markdown(p.checkpoint.card or p.text["no_card"])
    with weights:
        rows = [{**asdict(row), "shape": " × ".join(map(str, row.shape))} for row in parameter_statistics(p.checkpoint)]
        show_table(pd.DataFrame(rows), name="parameters", height=520, caption=p.text["weights_caption"])
    with settings:
        values = {name: str(value) for name, value in asdict(config).items()}
        show_table(pd.DataFrame({"field": values.keys(), "value": values.values()}), name="config", height=560)
    show_source(type(config), load)
