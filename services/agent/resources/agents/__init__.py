"""Agents and their settings."""
