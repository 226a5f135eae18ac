"""How a figure, a table, a formula or a drawing stands on a page, and how it is exported."""
