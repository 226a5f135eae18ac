"""How good a model is: BLEU, chrF, perplexity, accuracy, and the baselines beside them."""
