"""Passages: stored, embedded, listed."""
