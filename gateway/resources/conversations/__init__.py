"""Conversations of agents."""
