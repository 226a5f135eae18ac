"""The server: its settings, its limits, and its use of undocumented parts of Streamlit."""
