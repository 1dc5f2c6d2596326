"""MCP servers, by id and by name."""
