"""Blocks and their versions."""
