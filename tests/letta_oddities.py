"""Rows for the tables and the values that tests/letta_world.py leaves out: history, what is half deleted, what another
organization has, what refers to nothing, and what no version of this server knows.
"""

from typing import Any

from tests.letta_database import (
    ORGANIZATION,
    World,
    call,
    direction,
    embedding_config,
    identifier,
    llm_config,
    padded,
    returned,
    sealed,
)

OTHER_ORGANIZATION = "org-11111111-0000-4000-8000-000000000000"
STRANGER, ODD = identifier("agent", 20), identifier("agent", 21)
# Embedding sizes, each with an archive of its own.
SIZES = (0, 384, 1_536, 3_072, 4_096)
FORECAST = identifier("tool", 30)
USER = "user-00000000-0000-4000-8000-000000000000"
LONE_RETURN, GHOST, HOLOGRAM, FUNCTION = (identifier("message", number) for number in range(200, 204))
TALKER, LISTENER = identifier("agent", 0), identifier("agent", 1)


def archive_id(size: int) -> str:
    """Returns the archive whose vectors have so many numbers."""
    return identifier("archive", 100 + size)


def add(world: World) -> None:
    """Adds them all."""
    _tenants(world)
    _history(world)
    _vectors(world)
    _moved_tools(world)
    _half_deleted(world)
    _unknown_values(world)
    _odd_agent(world)
    _another_organization(world)


def _tenants(world: World) -> None:
    for organization in (ORGANIZATION, OTHER_ORGANIZATION):
        world.add("organizations", id=organization, name="somebody")
    world.add("users", id=USER, name="somebody", created_at=None)


def _history(world: World) -> None:
    owner: dict[str, Any] = {"agent_id": TALKER}
    world.add("jobs", id=identifier("job", 1), user_id=USER, status="completed", job_type="batch")
    world.add("llm_batch_job", id=identifier("batch", 1), status="completed", letta_batch_job_id=identifier("job", 1))
    world.add("llm_batch_items", id=identifier("batch_item", 1), llm_batch_id=identifier("batch", 1), **owner)
    world.add("run_metrics", id="run-1", **owner)
    world.add("step_metrics", id="step-1", **owner)
    world.add("provider_traces", id=identifier("provider_trace", 1), step_id="step-1", request_json={"model": "m"})
    world.add("provider_trace_metadata", id=identifier("provider_trace", 1), step_id="step-1")
    world.add("prompts", id=identifier("prompt", 1), prompt="Be kind.")
    world.add(
        "block_history", id=identifier("block_hist", 1), block_id=identifier("block", 0), label="persona", value="Once."
    )
    world.add(
        "provider_models",
        id=identifier("model", 1),
        handle="mine/m",
        name="m",
        model_type="llm",
        provider_id=identifier("provider", 0),
    )
    world.add(
        "mcp_oauth",
        id=identifier("mcp-oauth", 1),
        state="s",
        server_id=identifier("mcp_server", 0),
        token_type="Bearer",
        status="authorized",
        user_id=USER,
    )
    world.add("source_passages", id=identifier("passage", 90), text="piece", source_id=identifier("source", 0))
    world.add(
        "files_agents",
        id=identifier("file_agent", 1),
        file_id=identifier("file", 0),
        source_id=identifier("source", 0),
        file_name="papers/report.pdf",
        is_open=True,
        **owner,
    )
    for agent_id in (TALKER, LISTENER):
        world.add("groups_agents", group_id=identifier("group", 0), agent_id=agent_id)


def _vectors(world: World) -> None:
    for size in SIZES:
        config = embedding_config("embedder", size, f"elsewhere/embedder-{size}")
        world.add("archives", id=archive_id(size), name=f"{size} numbers", embedding_config=config)
        world.add(
            "archival_passages",
            id=identifier("passage", 100 + size),
            text=f"A thought of {size} numbers.",
            archive_id=archive_id(size),
            embedding=padded(direction(size, size)) if size else None,
            embedding_config=config,
        )
    # A tag as a row, which the passage itself has not.
    tag = {"tag": "row", "passage_id": identifier("passage", 100 + 384), "archive_id": archive_id(384)}
    world.add("passage_tags", id=identifier("passage_tag", 1), **tag)


def _moved_tools(world: World) -> None:
    """Adds a second server that took the tool's row over, and the links of both."""
    taker = identifier("mcp_server", 2)
    world.add(
        "mcp_server", id=taker, server_name="climate", server_type="streamable_http", server_url="https://127.0.0.1:9"
    )
    world.add(
        "tools",
        id=FORECAST,
        name="forecast",
        tool_type="external_mcp",
        source_type="python",
        source_code="def forecast():\n    raise RuntimeError()",
        tags=["mcp:climate"],
        metadata_={"mcp": {"server_name": "climate", "server_id": taker}},
    )
    for number, server in enumerate((identifier("mcp_server", 0), taker)):
        world.add("mcp_tools", id=identifier("mcp-tool-mapping", number), mcp_server_id=server, tool_id=FORECAST)


def _half_deleted(world: World) -> None:
    """Adds rows that are marked as deleted, and others that still belong to them."""
    agent_id, block_id, lost_archive = identifier("agent", 3), identifier("block", 9), identifier("archive", 30)
    conversation_id = identifier("conv", 2)
    world.say(agent_id, 210, "user", "The agent is gone.")
    world.add("agents_tags", agent_id=agent_id, tag="gone")
    world.add("agent_environment_variables", id=identifier("agent-env", 9), agent_id=agent_id, key="GONE", value="x")
    world.add("blocks_agents", agent_id=TALKER, block_id=block_id, block_label="old")
    world.add("blocks_tags", block_id=block_id, tag="gone")
    world.add("archives", id=lost_archive, name="gone", is_deleted=True)
    world.add("archival_passages", id=identifier("passage", 30), text="still there", archive_id=lost_archive)
    world.say(TALKER, 211, "user", "The conversation is gone.", conversation_id=conversation_id)
    world.add(
        "conversation_messages",
        id="conv_msg-gone",
        conversation_id=conversation_id,
        agent_id=TALKER,
        message_id=identifier("message", 211),
    )
    world.add("tools", id=identifier("tool", 31), name="gone", tool_type="custom", is_deleted=True)
    world.add("tools_agents", agent_id=TALKER, tool_id=identifier("tool", 31))


def _unknown_values(world: World) -> None:
    world.add("providers", id=identifier("provider", 9), name="carrier", provider_category="byok", provider_type="dove")
    world.add("mcp_server", id=identifier("mcp_server", 9), server_name="pigeon", server_type="pigeon")
    world.add("sandbox_configs", id=identifier("sandbox", 9), type="MODAL")
    world.add("tools", id=identifier("tool", 32), name="odd", tool_type="external_tomorrow", source_type="cobol")
    world.add("identities", id=identifier("identity", 9), identifier_key="robot", name="R", identity_type="robot")
    world.add("identities_agents", identity_id=identifier("identity", 9), agent_id=LISTENER)
    world.add(
        "groups",
        id=identifier("group", 9),
        manager_type="choir",
        agent_ids=[TALKER],
        manager_agent_id=identifier("x", 1),
    )
    world.add(
        "files",
        id=identifier("file", 9),
        source_id=identifier("source", 0),
        file_name="papers/dream.txt",
        processing_status="dreaming",
    )


def _odd_agent(world: World) -> None:
    """Adds an agent of a type that nobody knows, with messages of kinds that nobody knows, and an open secret."""
    window = [identifier("message", number) for number in (220, 200, 201, 202, 203)]
    world.add(
        "agents",
        id=ODD,
        name="odd",
        agent_type="of_tomorrow",
        llm_config=llm_config("gpt-4o"),
        response_format={"type": "haiku"},
        message_ids=window,
        project_id="project-1",
        tool_rules=[{"type": "conditional", "tool_name": "f", "child_output_mapping": "?"}],
        compaction_settings={"clip_chars": "many"},
    )
    world.say(ODD, 220, "system", "You are odd.")
    world.say(ODD, 200, "tool", **returned("call-of-nobody", "nobody asked"))
    world.say(ODD, 201, "ghost", "Boo.")
    world.say(ODD, 202, "user", [{"type": "hologram"}, {"type": "text", "text": "Look!"}])
    world.say(ODD, 203, "function", "done", tool_call_id="call-odd")
    world.say(ODD, 204, "assistant", None, tool_calls=[call("call-odd", "roll_dice", sides=6)])
    secrets = (
        ("NOT A NAME", "x", None),
        ("OLD", "from before", None),
        ("NEW", "", sealed("of another key", "another key")),
    )
    for number, (key, plain, encrypted) in enumerate(secrets, 20):
        world.add(
            "agent_environment_variables",
            id=identifier("agent-env", number),
            agent_id=ODD,
            key=key,
            value=plain,
            value_enc=encrypted,
        )


def _another_organization(world: World) -> None:
    other: dict[str, Any] = {"organization_id": OTHER_ORGANIZATION}
    world.add("agents", id=STRANGER, name="stranger", agent_type="letta_v1_agent", **other)
    world.say(STRANGER, 230, "user", "I live elsewhere.", **other)
    world.add("block", id=identifier("block", 20), label="human", value="?", **other)
    world.add("blocks_agents", agent_id=STRANGER, block_id=identifier("block", 20), block_label="human")
