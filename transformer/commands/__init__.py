"""The commands of ``python -m transformer``, as data."""
