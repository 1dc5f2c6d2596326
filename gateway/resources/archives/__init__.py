"""Archives, passages, and changes of their embedding model."""
