"""The sections of the Heads page."""
