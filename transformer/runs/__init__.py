"""One run of a model: what goes in, the recorded pass, what it writes, and how it is edited."""
