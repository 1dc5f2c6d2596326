"""A small world for tests/letta_database.py: agents that share, fork, wait and forget; rows that refer to nothing."""

from typing import Any

from tests import letta_oddities
from tests.letta_database import (
    PIXEL,
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

SMALL, LARGE = "text-embedding-3-small", "text-embedding-3-large"
ADA, BEN, CLEO, GONE, REFUSED = (identifier("agent", number) for number in range(5))
SHARED, ADAS_HUMAN, BENS_HUMAN, ISOLATED, FREE, MISSING_BLOCK = (identifier("block", number) for number in range(6))
SMALL_ARCHIVE, LARGE_ARCHIVE, PLAIN_ARCHIVE, ODD_ARCHIVE = (identifier("archive", number) for number in range(4))
FOLDER = identifier("source", 0)
REPORT, NOTES, UNREAD = (identifier("file", number) for number in range(3))
DICE, ECHO = identifier("tool", 0), identifier("tool", 1)
TALK, FORK, DELETED_TALK = (identifier("conv", number) for number in range(3))
PERSON = identifier("identity", 0)
PAIR, LOST_GROUP = identifier("group", 0), identifier("group", 1)
PROVIDER = identifier("provider", 0)
SERVER, PROGRAM = identifier("mcp_server", 0), identifier("mcp_server", 1)
FREQUENT, RARE = "the owl flies at midnight", "a kitten sleeps on the sofa"
DICE_SOURCE = '''def roll_dice(sides: int) -> str:
    """Rolls a die.

    Args:
        sides (int): How many sides it has.
    """
    return str(sides)
'''
_PROMPT = "You are a helpful assistant."
COMPILED = f"{_PROMPT}\n<memory_blocks>\n...</memory_blocks>"


def message_id(number: int) -> str:
    """Returns the id of the message with this number."""
    return identifier("message", number)


def build(*, endpoint: str = "https://api.example.com/v1", mcp: str = "https://mcp.example.com/mcp") -> World:
    """The world; `endpoint`: where the user's own provider is, `mcp`: an MCP server with the tool `echo`."""
    world = World()
    _around(world, endpoint, mcp)
    _tools(world)
    _memory(world)
    _agents(world)
    _ada(world)
    _ben(world)
    _cleo(world)
    _refused(world)
    _together(world)
    letta_oddities.add(world)
    return world


def _around(world: World, endpoint: str, mcp: str) -> None:
    common: dict[str, Any] = {"provider_type": "openai", "base_url": endpoint}
    world.add("providers", id=PROVIDER, name="mine", provider_category="byok", api_key_enc=sealed("sk-test"), **common)
    world.add(
        "providers",
        id=identifier("provider", 1),
        name="openai",
        provider_category="base",
        organization_id=None,
        **common,
    )
    world.add(
        "mcp_server",
        id=SERVER,
        server_name="weather",
        server_type="streamable_http",
        server_url=mcp,
        metadata_="null",
        token_enc="plain-token",
        custom_headers_enc=sealed('{"x-team": "owls"}'),
    )
    world.add(
        "mcp_server",
        id=PROGRAM,
        server_name="program",
        server_type="stdio",
        stdio_config={"server_name": "program", "type": "stdio", "command": "npx", "args": ["thing"], "env": None},
    )
    config_id = identifier("sandbox", 0)
    world.add("sandbox_configs", id=config_id, type="LOCAL", config={"sandbox_dir": None, "use_venv": False})
    for number, (key, value) in enumerate((("PLACE", "Oslo"), ("TOKEN", sealed("hidden-in-sandbox")))):
        world.add(
            "sandbox_environment_variables",
            id=identifier("sandbox-env", number),
            key=key,
            value="",
            value_enc=value,
            sandbox_config_id=config_id,
        )


def _tools(world: World) -> None:
    world.add(
        "tools",
        id=DICE,
        name="roll_dice",
        description="Rolls a die.",
        tool_type="custom",
        source_type="json",
        source_code=DICE_SOURCE,
        json_schema={
            "name": "roll_dice",
            "description": "Rolls a die.",
            "parameters": {"type": "object", "properties": {"sides": {"type": "integer"}}, "required": ["sides"]},
        },
        tags=["games"],
        return_char_limit=1_000,
        default_requires_approval=True,
        metadata_={"tool_hash": "abc"},
    )
    world.add(
        "tools",
        id=ECHO,
        name="echo",
        tool_type="external_mcp",
        source_type="python",
        source_code="def echo():\n    raise RuntimeError()",
        json_schema={"name": "echo", "parameters": {"type": "object", "properties": {}}},
        tags=["mcp:weather"],
        metadata_={"mcp": {"server_name": "weather", "server_id": SERVER}},
    )
    names = ("send_message", "memory_insert", "conversation_search", "no_longer_there")
    for number, name in enumerate(names, 10):
        world.add("tools", id=identifier("tool", number), name=name, tool_type="letta_core", source_type="python")


def _memory(world: World) -> None:
    values = {SHARED: ("persona", "I like owls."), ADAS_HUMAN: ("human", "Ada"), BENS_HUMAN: ("human", "Ben")}
    values |= {ISOLATED: ("human", "Ada, on the phone"), FREE: ("plans", "x" * 30)}
    for block_id, (label, value) in values.items():
        limit = 20 if block_id == FREE else 100_000
        world.add(
            "block", id=block_id, label=label, value=value, limit=limit, read_only=block_id == SHARED, metadata_="null"
        )
    world.add("block", id=identifier("block", 9), label="old", value="", limit=10, is_deleted=True)
    world.add("blocks_tags", block_id=SHARED, tag="owl")
    small, large = embedding_config(SMALL, 1_536), embedding_config(LARGE, 3_072)
    odd = embedding_config("embedder", 8, "elsewhere/embedder")
    archives = (
        (SMALL_ARCHIVE, "Small", small, "NATIVE"),
        (LARGE_ARCHIVE, "Large", large, "NATIVE"),
        (PLAIN_ARCHIVE, "Plain", "null", "NATIVE"),
        (ODD_ARCHIVE, "Odd", odd, "TPUF"),
    )
    for archive_id, name, config, kept in archives:
        world.add("archives", id=archive_id, name=name, embedding_config=config, vector_db_provider=kept)
    passages: tuple[tuple[str, str, Any, str | None], ...] = (
        (SMALL_ARCHIVE, FREQUENT, small, padded(direction(1, 1_536))),
        (SMALL_ARCHIVE, RARE, small, padded(direction(2, 1_536))),
        (LARGE_ARCHIVE, "a large thought", large, padded(direction(3, 3_072))),
        (PLAIN_ARCHIVE, "found by its words", None, None),
        (ODD_ARCHIVE, "kept elsewhere", odd, None),
        (identifier("archive", 9), "its archive is gone", None, None),
        (PLAIN_ARCHIVE, " ", None, None),
    )
    for number, (archive_id, text, config, vector) in enumerate(passages):
        world.add(
            "archival_passages",
            id=identifier("passage", number),
            text=text,
            tags=["night"] if number == 0 else None,
            metadata_={},
            archive_id=archive_id,
            embedding=vector,
            embedding_config=config,
        )
    world.add("sources", id=FOLDER, name="papers", description="What was written.", embedding_config=small)
    files = ((REPORT, "report.pdf", "application/pdf"), (NOTES, "notes.md", "text/markdown"), (UNREAD, "scan.pdf", ""))
    for file_id, name, media_type in files:
        state = "error" if file_id == UNREAD else "completed"
        world.add(
            "files",
            id=file_id,
            source_id=FOLDER,
            file_name=f"papers/{name}",
            original_file_name=name,
            file_type=media_type,
            file_size=1_000,
            processing_status=state,
        )
    world.add("file_contents", id="file_content-1", file_id=REPORT, text="The moon was full.\nThe owl was not.")
    world.add("file_contents", id="file_content-2", file_id=NOTES, text="# Notes\nBuy milk.")


def _agents(world: World) -> None:
    shapes: dict[str, dict[str, Any]] = {
        ADA: {
            "name": "Ada's friend",
            "agent_type": "letta_v1_agent",
            "llm_config": llm_config("gpt-4o-mini", handle="openai-proxy/gpt-4o-mini", temperature=0.3, max_tokens=900),
            "tool_rules": [
                {"type": "requires_approval", "tool_name": "roll_dice", "prompt_template": None},
                {"type": "max_count_per_step", "tool_name": "roll_dice", "prompt_template": None, "max_count_limit": 3},
                {"type": "from_the_future", "tool_name": "roll_dice"},
            ],
            "metadata_": {"team": "owls"},
            "message_ids": [message_id(number) for number in (1, 5, 4, 6, 7, 8, 9, 10, 11, 12)],
            "compaction_settings": {"model": "openai-proxy/gpt-4o-mini", "mode": "sliding_window", "clip_chars": 5_000},
        },
        BEN: {
            "name": "Ben's friend",
            "agent_type": "memgpt_v2_agent",
            "llm_config": llm_config("gpt-4o"),
            "tool_rules": [{"type": "exit_loop", "tool_name": "send_message", "prompt_template": None}],
            "metadata_": "null",
            "message_ids": [message_id(number) for number in range(20, 25)],
            "timezone": "Europe/Oslo",
        },
        CLEO: {
            "name": "Cleo's friend",
            "agent_type": "letta_v1_agent",
            "llm_config": llm_config("gpt-4o-mini"),
            "tool_rules": [{"type": "requires_approval", "tool_name": "roll_dice", "prompt_template": None}],
            "metadata_": None,
            "message_ids": [message_id(number) for number in (30, 31, 32, 33)],
            "timezone": "Nowhere/Atlantis",
        },
    }
    for agent_id, shape in shapes.items():
        world.add(
            "agents",
            id=agent_id,
            system=_PROMPT,
            embedding_config=embedding_config(SMALL, 1_536),
            response_format="null",
            message_buffer_autoclear=False,
            enable_sleeptime=agent_id == ADA,
            **shape,
        )
    world.add("agents", id=GONE, name="gone", agent_type="letta_v1_agent", is_deleted=True)
    owned = ((ADA, ADAS_HUMAN, "human"), (ADA, SHARED, "persona"), (ADA, MISSING_BLOCK, "lost"))
    for agent_id, block_id, label in (*owned, (BEN, BENS_HUMAN, "human"), (BEN, SHARED, "persona")):
        world.add("blocks_agents", agent_id=agent_id, block_id=block_id, block_label=label)
    for agent_id, number in ((ADA, 0), (ADA, 1), (ADA, 11), (BEN, 10), (BEN, 13), (CLEO, 0)):
        world.add("tools_agents", agent_id=agent_id, tool_id=identifier("tool", number))
    world.add("agents_tags", agent_id=ADA, tag="friend")
    world.add("archives_agents", agent_id=ADA, archive_id=SMALL_ARCHIVE, is_owner=True)
    world.add("archives_agents", agent_id=BEN, archive_id=SMALL_ARCHIVE, is_owner=False)
    world.add("sources_agents", agent_id=ADA, source_id=FOLDER)
    secrets = ((ADA, "SEALED", sealed("hidden")), (ADA, "PLAIN", "in the clear"), (BEN, "EMPTY", ""))
    for number, (agent_id, key, value) in enumerate(secrets):
        world.add(
            "agent_environment_variables",
            id=identifier("agent-env", number),
            agent_id=agent_id,
            key=key,
            value="",
            value_enc=value,
        )


def _ada(world: World) -> None:
    """A summary, a picture, a call that was run, one that was denied; messages that dropped out; two conversations."""
    say = world.say
    say(ADA, 1, "system", COMPILED)
    say(ADA, 2, "user", '{"type": "user_message", "message": "Long ago I said hello.", "time": "2025-03-01"}')
    say(ADA, 3, "assistant", "Hello, long ago.")
    picture = {
        "type": "image",
        "source": {"type": "letta", "file_id": "file-x", "media_type": "image/png", "data": PIXEL},
    }
    say(ADA, 4, "user", [{"type": "text", "text": "What is this?"}, picture], otid="my-own-otid")
    say(ADA, 5, "summary", '{"type": "system_alert", "message": "They said hello.", "time": "2025-03-01"}')
    reasoning = {"type": "reasoning", "is_native": True, "reasoning": "I should note it.", "signature": None}
    say(ADA, 6, "assistant", [reasoning], tool_calls=[call("call-1", "memory_insert", label="human", new_string="!")])
    say(ADA, 7, "tool", **returned("call-1", "None"), name="memory_insert")
    say(ADA, 8, "assistant", "It is a pixel.")
    say(ADA, 9, "approval", [], tool_calls=[call("call-2", "roll_dice", sides=6)], tool_call_id="call-2")
    denied = {"type": "approval", "tool_call_id": "call-2", "approve": False, "reason": "no gambling"}
    say(ADA, 10, "approval", [], approvals=[denied], approval_request_id=message_id(9))
    answer = returned("call-2", "Error: request to call tool denied. User reason: no gambling", "Failed")
    say(ADA, 11, "tool", **{**answer, "content": []})
    # 12, the last of the window, is not there.
    world.add("conversations", id=TALK, agent_id=ADA, summary="On the phone", model="openai-proxy/gpt-4o")
    world.add("conversations", id=FORK, agent_id=ADA, summary=None, model=None)
    world.add("conversations", id=DELETED_TALK, agent_id=ADA, is_deleted=True)
    world.add("blocks_conversations", conversation_id=TALK, block_id=ISOLATED, block_label="human")
    say(ADA, 40, "system", COMPILED, conversation_id=TALK)
    say(ADA, 41, "user", "Can you hear me?", conversation_id=TALK)
    say(ADA, 42, "assistant", "Loud and clear.", conversation_id=TALK)
    say(ADA, 43, "system", COMPILED, conversation_id=FORK)
    say(ADA, 44, "user", "And on this line?", conversation_id=FORK)
    say(ADA, 45, "user", "Never mind.", conversation_id=DELETED_TALK, is_deleted=True)
    say(ADA, 46, "user", "I am listed nowhere.", conversation_id=identifier("conv", 9))
    for conversation_id, numbers in ((TALK, (40, 41, 42)), (FORK, (43, 41, 42, 44, 47))):
        for position, number in enumerate(numbers):
            world.add(
                "conversation_messages",
                id=f"conv_msg-{conversation_id}-{number}",
                conversation_id=conversation_id,
                agent_id=ADA,
                message_id=message_id(number),
                position=position,
                in_context=True,
            )


def _ben(world: World) -> None:
    """Speaks by a call, and thinks aloud beside it."""
    say = world.say
    say(BEN, 20, "system", COMPILED)
    say(BEN, 21, "user", '{"type": "user_message", "message": "I am Ben.", "time": "2025-03-01"}')
    say(BEN, 22, "assistant", "He told me his name.", tool_calls=[call("call-3", "send_message", message="Hi Ben!")])
    say(BEN, 23, "tool", **returned("call-3", "Sent message successfully."), name="send_message")
    say(BEN, 24, "user", '{"type": "heartbeat", "reason": "go on", "time": "2025-03-01"}')


def _cleo(world: World) -> None:
    """Waits for an answer: one call of the reply waits, the other does not."""
    say = world.say
    say(CLEO, 30, "system", COMPILED)
    say(CLEO, 31, "user", "Roll a die, and remember it.")
    insert = call("call-4", "memory_insert", label="human", new_string="rolls dice")
    say(CLEO, 32, "assistant", "Shall I?", tool_calls=[insert], step_id="step-1")
    asked = call("call-5", "roll_dice", sides=20)
    say(CLEO, 33, "approval", [], tool_calls=[asked], tool_call_id="call-5", step_id="step-1")


def _refused(world: World) -> None:
    """Adds an agent with two blocks of one label and more messages than a connection holds. It is refused: the id of a
    conversation is that of another agent, and so of that one's own conversation."""
    world.add("agents", id=REFUSED, name="refused", agent_type="letta_v1_agent", llm_config=llm_config("gpt-4o"))
    for block_id, label in ((ADAS_HUMAN, "human"), (BENS_HUMAN, "human as it was called before")):
        world.add("blocks_agents", agent_id=REFUSED, block_id=block_id, block_label=label)
    world.add("conversations", id=CLEO.replace("agent", "conv"), agent_id=REFUSED)
    for number in range(60, 72):
        world.say(REFUSED, number, "user", f"{number} " * 500_000)


def _together(world: World) -> None:
    world.add(
        "identities",
        id=PERSON,
        identifier_key="ada",
        name="Ada Lovelace",
        identity_type="user",
        properties=[{"key": "language", "value": "en", "type": "string"}],
    )
    world.add("identities_agents", identity_id=PERSON, agent_id=ADA)
    world.add("identities_blocks", identity_id=PERSON, block_id=ADAS_HUMAN)
    for group_id, kind, manager in ((PAIR, "round_robin", None), (LOST_GROUP, "supervisor", identifier("agent", 9))):
        world.add(
            "groups",
            id=group_id,
            description="two of them",
            manager_type=kind,
            manager_agent_id=manager,
            agent_ids=[BEN, ADA],
            max_turns=4 if kind == "round_robin" else None,
        )
    world.add("groups_blocks", group_id=PAIR, block_id=SHARED)
    world.add("runs", id="run-1", agent_id=ADA)
    world.add("steps", id="step-1", run_id="run-1")
    world.add("steps", id="step-2", run_id="run-1")
