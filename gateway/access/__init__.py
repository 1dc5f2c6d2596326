"""Who calls and what that opens: credentials, roles, limits."""
