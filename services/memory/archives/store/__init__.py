"""Archives on Postgres."""
