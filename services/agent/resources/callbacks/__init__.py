"""Callbacks: a POST when a run has ended."""
