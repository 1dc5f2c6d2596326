"""Files: taken in, parsed, cut into passages."""
