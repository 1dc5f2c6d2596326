"""MCP servers of tenants: what is registered, their credentials, and the tools that come from there."""
