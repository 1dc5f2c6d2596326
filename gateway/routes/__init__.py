"""The routes by resource. Each handler parses, calls, converts."""
