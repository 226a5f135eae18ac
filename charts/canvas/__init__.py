"""The drawings that follow the pointer in the browser: JavaScript, and the bytes that it gets."""
