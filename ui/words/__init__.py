"""The texts of the app in every language."""
