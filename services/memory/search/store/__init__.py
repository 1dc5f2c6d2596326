"""Rankings on Postgres."""
