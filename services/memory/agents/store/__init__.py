"""Agents' memory on Postgres."""
