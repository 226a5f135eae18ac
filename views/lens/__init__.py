"""The sections of the Lens page."""
