"""Contents of an attention map: its arithmetic, value vectors, sources of its scores, rollout."""
