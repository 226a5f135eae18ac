"""Which parts of a model wrote its answer, and by what path."""
