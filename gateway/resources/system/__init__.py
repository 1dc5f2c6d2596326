"""Health, tags, sizes, and routes of the reference that are not there yet."""
