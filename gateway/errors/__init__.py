"""Failures as HTTP answers: one table of statuses, and the bodies that each kind of client reads."""
