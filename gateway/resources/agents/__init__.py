"""Agents, and what is attached to them."""
