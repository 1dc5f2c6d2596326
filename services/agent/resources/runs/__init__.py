"""Runs, as their readers see them."""
