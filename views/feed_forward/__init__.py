"""The sections of the Feed forward page."""
