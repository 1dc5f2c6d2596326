"""Messages of an MCP server, as values of Loci. Pure."""
