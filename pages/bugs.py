"""The former page “Which bug is this?”, now an exercise of Lessons: older links lead there."""

from ui.shell.navigation import lead_from_former

lead_from_former("bugs")
