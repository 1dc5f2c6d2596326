"""Tenants, users, keys and restricted tokens."""
