"""Everything Streamlit that several pages share."""
