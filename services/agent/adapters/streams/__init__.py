"""Stored streams and notices between replicas."""
