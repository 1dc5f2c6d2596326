"""The model gateway: one neutral chat model in front of every provider, its models and its embeddings."""
