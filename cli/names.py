"""The services by name, and what the embedded Postgres calls theirs."""

from __future__ import annotations

SERVICES = ("agent", "memory", "llm_gateway", "tool_runner")
DATABASE = "loci"


def role(service: str) -> str:
    """The role that `service` logs in as; its schema has the service's name."""
    return f"loci_{service}"
