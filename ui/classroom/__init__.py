"""A class: an instructor's session with students, in memory or in Redis."""
