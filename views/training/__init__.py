"""The sections of the Training page."""
