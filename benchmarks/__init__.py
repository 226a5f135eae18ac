"""Benchmarks that a reader can run: ``python -m benchmarks.forward_and_decode`` (see README.md)."""
