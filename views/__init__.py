"""One folder per page, with its sections and its texts in each language."""
