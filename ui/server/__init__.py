"""The server: its settings, its limits, and its use of Streamlit beyond the documentation."""
