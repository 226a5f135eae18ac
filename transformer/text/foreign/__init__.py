"""Other people's tokenizers: their files, what these may hold, and what they do to a text."""
