"""Schedules in Postgres."""
