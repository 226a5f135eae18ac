"""Tiny models that learn to copy, reverse or sort letters within seconds."""
