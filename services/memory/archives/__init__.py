"""Archives of passages."""
