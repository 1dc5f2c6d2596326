"""Runs, their steps and their event streams."""
