"""Guests: checkpoints run by their own code in ``transformers``, recorded under our names."""
