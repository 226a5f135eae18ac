"""What one attention map means: its arithmetic, where it leads, and how far to trust it."""
