"""Calls to providers written down as they were, and answered from what was written."""
