"""Sections that several pages draw, because the package of one page never imports that of another."""
