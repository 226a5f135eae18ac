"""Display of figures, tables, formulas and canvases on a page, and their export."""
