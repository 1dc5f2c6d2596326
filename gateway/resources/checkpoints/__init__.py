"""Checkpoints: rewinds and forks."""
