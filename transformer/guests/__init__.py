"""Guests: checkpoints that their own code in ``transformers`` runs, recorded under the names of our own activations."""
