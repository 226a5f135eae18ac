"""Scores of a model: BLEU, chrF, perplexity, accuracy, with baselines."""
