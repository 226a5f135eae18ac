"""Deployment to a class: a faster entry than ``streamlit run``, and what a second machine needs."""
