"""Archives and passages on Postgres; embeddings from the llm gateway."""
