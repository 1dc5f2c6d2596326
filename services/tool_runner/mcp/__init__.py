"""MCP servers of tenants: their registry, sessions with them, and the tools that come from there."""
