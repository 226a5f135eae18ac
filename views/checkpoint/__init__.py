"""The sections of the Checkpoint page."""
