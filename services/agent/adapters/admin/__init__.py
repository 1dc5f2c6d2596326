"""Administration in Postgres, with SQLAlchemy, and behind other services."""
