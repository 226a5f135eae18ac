"""The sections of the Bugs page."""
