"""Search over the catalogue: by words, by meaning, or both, without an outside service."""
