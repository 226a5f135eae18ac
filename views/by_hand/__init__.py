"""The sections of the By hand page."""
