"""A page of the app: its frame, and the kit with which it writes, computes and asks."""
