"""Settings of sandboxes and their environment variables."""
