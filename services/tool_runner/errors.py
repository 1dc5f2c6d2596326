"""Errors that several RPCs raise."""

from uuid import UUID

from services.common.errors import AlreadyExists, NotFound


def no_such_tool(tool_id: UUID) -> NotFound:
    """Returns the error for an id that names no tool of the tenant."""
    return NotFound(f"Tool tool-{tool_id} not found", reason="TOOL_NOT_FOUND")


def name_taken(name: str) -> AlreadyExists:
    """Returns the error for a name that another tool of the tenant has."""
    return AlreadyExists(f"a tool named {name!r} already exists", reason="TOOL_NAME_TAKEN")


def no_such_config(config_id: UUID) -> NotFound:
    """Returns the error for an id that names no settings of the tenant."""
    return NotFound(f"Sandbox config sandbox-{config_id} not found", reason="SANDBOX_CONFIG_NOT_FOUND")


def no_such_variable(variable_id: UUID) -> NotFound:
    """Returns the error for an id that names no variable of the tenant's sandbox settings."""
    return NotFound(f"Environment variable sandbox-env-{variable_id} not found", reason="VARIABLE_NOT_FOUND")
