"""Agents on their way in and out."""
