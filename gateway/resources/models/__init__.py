"""Models that can be used, and their context windows."""
