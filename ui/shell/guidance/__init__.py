"""Lessons and routes: their steps, the bar above a page, and the way through the pages."""
