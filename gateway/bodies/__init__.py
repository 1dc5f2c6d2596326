"""What clients send: typed by pydantic, then turned into requests of the services."""
