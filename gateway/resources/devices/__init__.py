"""Environments: remote devices that run agents' work."""
