"""The former page Paths, now a part of Compare: older links lead there."""

from ui.shell.navigation import lead_from_former

lead_from_former("paths")
