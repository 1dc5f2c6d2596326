"""Changes of embedding models on Postgres."""
