"""Documents: self-contained HTML files made of figures, texts and data classes."""
