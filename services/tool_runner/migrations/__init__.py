"""The Alembic history of the schema `tool_runner`."""
