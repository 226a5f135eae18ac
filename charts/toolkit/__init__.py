"""What all figures share: style, sizes, the sheet they are drawn on, checks, the bytes they are packed into."""
