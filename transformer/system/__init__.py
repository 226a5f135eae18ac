"""The machine around a model: starting Python processes, where Python looks for modules, what a terminal is sent."""
