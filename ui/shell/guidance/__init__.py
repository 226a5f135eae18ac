"""Lessons and routes: their steps, the lesson bar, and navigation to opened parts."""
