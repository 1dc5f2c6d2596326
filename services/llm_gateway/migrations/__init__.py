"""The Alembic history of the schema `llm_gateway`."""
