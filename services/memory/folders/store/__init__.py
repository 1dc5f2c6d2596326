"""Folders on Postgres."""
