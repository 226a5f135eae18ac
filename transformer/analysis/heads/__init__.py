"""What heads do: their roles, their importance, what each one changes."""
