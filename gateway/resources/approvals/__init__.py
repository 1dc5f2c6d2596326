"""Calls that wait for a person, by conversation."""
