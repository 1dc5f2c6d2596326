"""Calls of tools: receipts, output and files."""
