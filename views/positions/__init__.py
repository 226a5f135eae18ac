"""The sections of the Positions page."""
