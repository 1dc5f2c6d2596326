"""Open files of agents, on Postgres."""
