"""Six mistakes that are easily made in a Transformer, switched on in a live model, and the checks that find them."""
