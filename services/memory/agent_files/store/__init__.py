"""What agents have open, on Postgres."""
