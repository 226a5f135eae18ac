"""A class on every page: the bars of students and instructor, and what a session remembers of it."""
