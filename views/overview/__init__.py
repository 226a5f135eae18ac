"""The sections of the Overview page."""
