"""Sessions with MCP servers, and calls of their tools."""
