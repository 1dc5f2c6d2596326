"""The configured providers: the operator's from the environment, and those of tenants from the database."""
