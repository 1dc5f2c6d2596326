"""The arguments of the tools, and what they ask for."""
