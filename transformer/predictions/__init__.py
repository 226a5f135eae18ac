"""What the model predicts: probabilities, decoding, lenses, word alignment, comparison of runs."""
