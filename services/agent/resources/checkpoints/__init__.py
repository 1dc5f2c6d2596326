"""Checkpoints of conversations, rewinds and forks."""
