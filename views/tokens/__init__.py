"""The sections of the Tokens page."""
