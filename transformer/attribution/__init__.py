"""Which inputs and which parts of the model a prediction comes from, and how far to trust an attention map."""
