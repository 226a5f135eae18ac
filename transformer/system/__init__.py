"""The machine around a model: how Python processes are started, and where Python looks for modules."""
