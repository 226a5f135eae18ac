"""Benchmarks that a reader can run: ``python -m benchmarks.forward_and_decode`` (README.md explains them)."""
