"""A guest on the Checkpoint page: whose code computes it, and what of its files is not used."""

import streamlit as st

from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from ui.page.page import Page
from ui.show.figures import show_source
from ui.words.texts import as_plain


def guest_view(p: Page) -> None:
    """Name the class of ``transformers`` that computes this guest, with its source folded."""
    checkpoint, config = p.checkpoint, p.checkpoint.config
    st.markdown(p.text["computed"].format(architecture=config.architecture, family=as_plain(config.family)))
    agreement = checkpoint.model.agreement
    lengths = f" {p.text['and']} ".join(map(whole, agreement.lengths))
    differences = {"attention": three_digits(agreement.attention), "hidden": three_digits(agreement.hidden)}
    st.markdown(p.text["agrees"].format(maps=whole(agreement.n_maps), lengths=lengths, **differences))
    if config.unshown_head:
        st.markdown(p.text["unshown_head"].format(architecture=config.unshown_head))
    if config.image is not None and config.image.assumed:
        height, width = config.image.preprocessing.shape
        st.markdown(p.text["assumed_image"].format(height=height, width=width))
    if checkpoint.unread:
        names = as_plain(", ".join(checkpoint.unread[:20]))
        st.caption(p.text["unread"].format(count=len(checkpoint.unread), names=names))
    if checkpoint.adapter:
        st.caption(p.text["adapter"].format(base=as_plain(checkpoint.adapter.base)))
    show_source(*checkpoint.model.classes)
