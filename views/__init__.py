"""What one page alone needs: a folder a page, with its sections and its texts in each language."""
