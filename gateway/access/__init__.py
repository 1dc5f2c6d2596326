"""Authentication and authorization: credentials, roles, limits."""
