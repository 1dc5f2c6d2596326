"""Remote devices."""
