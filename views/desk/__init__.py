"""The page of an instructor: a class, its questions and its answers."""
