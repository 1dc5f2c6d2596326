"""The Alembic history of the schema `memory`."""
