"""What the model predicts: probabilities, decoding steps, lenses, word alignment, and two runs compared."""
