"""Passages on Postgres."""
