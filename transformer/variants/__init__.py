"""Layers that only other people's checkpoints need: each beside the layer of the paper that it replaces."""
