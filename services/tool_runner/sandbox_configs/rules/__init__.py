"""Rules about environment variables and sandbox settings. Pure."""
