"""Recordings of calls to providers, and their replay."""
