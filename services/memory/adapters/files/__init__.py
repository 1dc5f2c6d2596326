"""Folders and files on Postgres; the parsing child."""
