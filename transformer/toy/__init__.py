"""Tiny models that learn to copy, reverse or sort letters within seconds: one can watch attention being born."""
