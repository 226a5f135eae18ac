"""Presenting to a class: large figures, and keys in place of the mouse."""
