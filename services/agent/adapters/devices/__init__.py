"""Remote devices in Postgres."""
