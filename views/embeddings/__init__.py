"""The sections of the Embeddings page."""
