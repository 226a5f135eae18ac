"""The drawings that answer the pointer in the browser: JavaScript, and the bytes it is sent."""
