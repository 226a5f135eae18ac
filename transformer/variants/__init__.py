"""Layers that only third-party checkpoints need, named after the paper's layers that they replace."""
