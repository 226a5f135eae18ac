"""The former page Glossary, now a panel of every page: older links lead there."""

from ui.shell.navigation import lead_from_former

lead_from_former("glossary")
