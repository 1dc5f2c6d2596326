"""Tenants, users, keys and tokens in Postgres."""
