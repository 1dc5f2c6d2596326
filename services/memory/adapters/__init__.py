"""Postgres and the llm gateway, as `ports.py` wants them."""
