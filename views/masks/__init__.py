"""The sections of the Masks page."""
