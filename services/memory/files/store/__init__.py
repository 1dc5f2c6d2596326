"""Files on Postgres."""
