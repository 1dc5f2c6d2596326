"""Changes of an archive's embedding model."""
