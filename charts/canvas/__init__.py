"""Interactive figures in the browser: their JavaScript, and the bytes that it receives."""
