"""The llm gateway, and the child that parses files."""
