"""Agent files."""

from gateway.openapi.schemas import MOMENT, OBJECT, TEXT, array, maybe, record

AGENT_FILE = record(
    "AgentFile",
    {
        **{name: array(OBJECT) for name in ("agents", "groups", "blocks", "files", "sources", "tools", "mcp_servers")},
        "skills": array(OBJECT),
        "metadata": OBJECT,
        "created_at": maybe(MOMENT),
    },
)
IMPORTED = record("ImportedAgents", {"agent_ids": array(TEXT), "warnings": array(TEXT)}, optional=("warnings",))
