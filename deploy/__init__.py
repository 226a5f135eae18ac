"""Serving a class: an entry that answers faster than ``streamlit run``, and what a second machine needs."""
