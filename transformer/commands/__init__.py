"""Commands of ``python -m transformer`` that report what a model does."""
