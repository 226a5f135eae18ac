"""Documents: one HTML file each that needs no other file and no host, made of figures, words and data classes."""
