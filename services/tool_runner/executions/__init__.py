"""Calls of tools: each at most once, by receipts that outlive whoever asked."""
