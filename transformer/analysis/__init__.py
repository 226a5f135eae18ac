"""Numbers derived from a trace or a checkpoint, beside the activations themselves. One concept a file."""
