"""What an MCP server sends, as values of Loci. Pure."""
