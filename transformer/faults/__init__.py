"""Six common faults of a Transformer, injected into a live model, and the checks that find them."""
