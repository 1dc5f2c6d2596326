"""The HTTP server, what surrounds every request, and how a request gets to its handler."""
