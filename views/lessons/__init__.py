"""The sections of the Lessons page."""
