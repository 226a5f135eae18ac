"""Other people's checkpoints, on our own modules: one file a family."""
