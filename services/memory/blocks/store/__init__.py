"""Blocks on Postgres."""
