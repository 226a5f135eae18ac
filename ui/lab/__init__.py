"""What two or three pages have in common."""
