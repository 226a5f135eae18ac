"""Layers that only third-party checkpoints need, each named after the layer of the paper that it replaces."""
