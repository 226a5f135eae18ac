"""Parts that two or three pages of the laboratory share."""
