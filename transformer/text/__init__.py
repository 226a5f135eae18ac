"""Conversion between text and token ids."""
