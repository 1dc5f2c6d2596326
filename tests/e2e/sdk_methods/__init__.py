"""A case for every method of the official client."""
