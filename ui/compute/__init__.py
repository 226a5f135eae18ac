"""Results that are computed once and shared by all sessions, and the order of computations."""
