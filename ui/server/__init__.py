"""What this server is: its settings, what it allows, and what it takes of Streamlit beyond the documentation."""
