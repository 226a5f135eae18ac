"""The sections of the Surgery page."""
