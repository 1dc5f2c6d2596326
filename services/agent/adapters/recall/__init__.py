"""Recall on Postgres; embeddings from the llm gateway."""
