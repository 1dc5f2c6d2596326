"""The memory of an agent as a whole."""
