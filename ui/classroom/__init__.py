"""A class: an instructor's session with students, in the memory of this server or in Redis. No Streamlit here."""
