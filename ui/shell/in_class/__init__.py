"""A class on every page: the bars of its students and of its instructor, and what a session remembers of it."""
