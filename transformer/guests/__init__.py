"""Guests: checkpoints that run with their own code in ``transformers`` and are recorded under this project's names."""
