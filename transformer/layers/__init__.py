"""What each layer does to a vector: norms, residual stream, feed-forward units, positions, parameters."""
