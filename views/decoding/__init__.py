"""The sections of the Decoding page."""
