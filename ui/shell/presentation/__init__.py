"""Presentation to a class: large figures, and keyboard control."""
