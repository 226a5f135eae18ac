"""The sections of the Attention page."""
