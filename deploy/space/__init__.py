"""A Space of Hugging Face: its card, and ``python -m deploy.space FOLDER``, which writes its files."""
