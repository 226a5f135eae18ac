"""The machine around a model: Python processes, Python's module search path, terminal output."""
