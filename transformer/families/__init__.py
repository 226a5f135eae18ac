"""Third-party checkpoints built from this project's modules: one file per family."""
