"""Search of passages."""
