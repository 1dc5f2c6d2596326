"""Stored messages."""
