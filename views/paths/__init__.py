"""The sections of the Paths page."""
