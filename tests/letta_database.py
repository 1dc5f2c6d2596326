"""A database as the Letta V1 server 0.16.8 (retired) leaves it, made by the tests: tables with the columns that an
import meets, and the rows of a World in them.
"""

import base64
import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

ORGANIZATION = "org-00000000-0000-4000-8000-000000000000"
ENCRYPTION_KEY = "the old server's key"
REVISION = "1c28e167b74f"
PADDED = 4_096
BEGIN = datetime(2025, 3, 1, 12, tzinfo=UTC)
PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000000"
        "0200015e2e7d0b0000000049454e44ae426082"
    )
).decode()

_COMMON = "created_at timestamptz, updated_at timestamptz, is_deleted boolean DEFAULT false, organization_id text"
# Columns beside the common ones; the last five have none of them.
_TABLES = {
    "providers": "id text, name text, provider_type text, provider_category text, base_url text, region text,"
    " api_version text, api_key text, api_key_enc text, access_key text, access_key_enc text",
    "mcp_server": "id text, server_name text, server_type text, server_url text, stdio_config json, metadata_ json,"
    " token text, token_enc text, custom_headers json, custom_headers_enc text",
    "sandbox_configs": "id text, type text, config json",
    "sandbox_environment_variables": "id text, key text, value text NOT NULL, value_enc text, description text,"
    " sandbox_config_id text",
    "tools": "id text, name text, description text, tool_type text, source_type text, source_code text,"
    " json_schema json, args_json_schema json, tags json, return_char_limit int, pip_requirements json,"
    " npm_requirements json, default_requires_approval boolean, enable_parallel_execution boolean, metadata_ json",
    "block": 'id text, label text, value text, "limit" int, description text, metadata_ json, is_template boolean,'
    " template_name text, read_only boolean, preserve_on_migration boolean, version int",
    "blocks_tags": "id text, block_id text, tag text",
    "block_history": "id text, block_id text, value text",
    "archives": "id text, name text, description text, metadata_ json, embedding_config json, vector_db_provider text",
    "archival_passages": "id text, text text, tags json, metadata_ json, archive_id text, embedding vector,"
    " embedding_config json",
    "sources": "id text, name text, description text, instructions text, metadata_ json, embedding_config json",
    "files": "id text, source_id text, file_name text, original_file_name text, file_type text, file_size int,"
    " processing_status text",
    "file_contents": "id text, file_id text, text text",
    "source_passages": "id text, text text, file_id text",
    "agents": "id text, name text, description text, system text, agent_type text, message_ids json, llm_config json,"
    " embedding_config json, tool_rules json, metadata_ json, response_format json, compaction_settings json,"
    " message_buffer_autoclear boolean, enable_sleeptime boolean, timezone text, max_files_open int,"
    " per_file_view_window_char_limit int",
    "agent_environment_variables": "id text, agent_id text, key text, value text NOT NULL, value_enc text,"
    " description text",
    "messages": "id text, agent_id text, role text, content json, text text, tool_calls json, tool_call_id text,"
    " tool_returns json, approvals json, approval_request_id text, approve boolean, denial_reason text, name text,"
    " otid text, sender_id text, step_id text, conversation_id text, sequence_id bigint",
    "conversations": "id text, agent_id text, summary text, model text, model_settings json",
    "conversation_messages": "id text, conversation_id text, agent_id text, message_id text, position int,"
    " in_context boolean",
    "identities": "id text, identifier_key text, name text, identity_type text, properties json",
    "groups": "id text, description text, manager_type text, manager_agent_id text, agent_ids json, max_turns int,"
    " termination_token text, sleeptime_agent_frequency int, max_message_buffer_length int,"
    " min_message_buffer_length int",
    "runs": "id text, agent_id text",
    "steps": "id text, run_id text",
}
_JOINS = {
    "blocks_agents": "agent_id text, block_id text, block_label text",
    "tools_agents": "agent_id text, tool_id text",
    "agents_tags": "agent_id text, tag text",
    "archives_agents": "agent_id text, archive_id text, is_owner boolean",
    "sources_agents": "agent_id text, source_id text",
    "blocks_conversations": "conversation_id text, block_id text, block_label text",
    "identities_agents": "identity_id text, agent_id text",
    "identities_blocks": "identity_id text, block_id text",
    "groups_agents": "group_id text, agent_id text",
    "groups_blocks": "group_id text, block_id text",
    "alembic_version": "version_num text",
}


def sealed(text: str, key: str = ENCRYPTION_KEY) -> str:
    """A secret as the old server encrypts it."""
    salt, iv = os.urandom(16), os.urandom(12)
    derived = hashlib.pbkdf2_hmac("sha256", key.encode(), salt, 100_000, 32)
    return base64.b64encode(salt + iv + AESGCM(derived).encrypt(iv, text.encode(), None)).decode()


def identifier(prefix: str, number: int) -> str:
    """`prefix-<uuid4>`, the same for the same number."""
    digest = hashlib.sha256(f"{prefix} {number}".encode()).digest()
    return f"{prefix}-{UUID(bytes=digest[:16], version=4)}"


def embedding_config(model: str, size: int, handle: str = "") -> dict[str, Any]:
    """Returns an embedding_config as a row has it."""
    return {
        "embedding_endpoint_type": "openai",
        "embedding_endpoint": "https://api.example.com/v1",
        "embedding_model": model,
        "embedding_dim": size,
        "embedding_chunk_size": 300,
        "handle": handle or f"openai/{model}",
        "batch_size": 32,
    }


def llm_config(model: str, **others: Any) -> dict[str, Any]:
    """Returns an llm_config as a row has it: all that nobody set is null."""
    unset = dict.fromkeys(("temperature", "max_tokens", "reasoning_effort", "verbosity", "response_format", "effort"))
    return {
        **unset,
        "model": model,
        "model_endpoint_type": "openai",
        "model_endpoint": "https://api.example.com/v1",
        "provider_name": "openai",
        "provider_category": "base",
        "handle": f"openai/{model}",
        "context_window": 30_000,
        "put_inner_thoughts_in_kwargs": False,
        "parallel_tool_calls": False,
        **others,
    }


def direction(number: int, size: int) -> list[float]:
    """A vector of this length in a direction of its own, as a model would give it."""
    values = [math.sin(number * 7.0 + place) for place in range(size)]
    length = math.hypot(*values)
    return [value / length for value in values]


def padded(vector: Sequence[float]) -> str:
    """The vector as text, filled with zeros."""
    return "[" + ",".join(repr(one) for one in [*vector, *[0.0] * (PADDED - len(vector))]) + "]"


@dataclass
class World:
    """The rows that were put into the database, by ids."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _sequence: int = 0

    def add(self, table: str, **row: Any) -> str:
        """A row; lists and objects become JSON, and its common columns are filled."""
        if table in _TABLES:
            number = len(self.rows.get(table, []))
            row = {"organization_id": ORGANIZATION, "created_at": BEGIN + timedelta(minutes=number)} | row
        self.rows.setdefault(table, []).append(row)
        return str(row.get("id", ""))

    def say(self, agent_id: str, number: int, role: str, text: str | list[Any] | None = None, **row: Any) -> str:
        """A message; `text`: its one part, or its content."""
        self._sequence += 1
        content = [{"type": "text", "text": text}] if isinstance(text, str) else text or []
        return self.add(
            "messages",
            **{
                "id": identifier("message", number),
                "agent_id": agent_id,
                "role": role,
                "content": content,
                "tool_calls": [],
                "sequence_id": self._sequence,
                **row,
            },
        )


def call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    """A tool call as a row has it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def returned(call_id: str, message: str, status: str = "OK") -> dict[str, Any]:
    """Returns the columns of a tool message of this call."""
    packed = json.dumps({"status": status, "message": message, "time": "2025-03-01 01:02:03 PM UTC+0000"})
    word = "success" if status == "OK" else "error"
    given = {"tool_call_id": call_id, "status": word, "stdout": None, "stderr": None, "func_response": packed}
    return {"tool_call_id": call_id, "tool_returns": [given], "content": [{"type": "text", "text": packed}]}


async def create(url: str, world: World) -> None:
    """Makes the tables in an empty database, and fills them."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        for name, columns in _TABLES.items():
            await connection.execute(f"CREATE TABLE {name} ({columns}, {_COMMON}, PRIMARY KEY (id))")
        for name, columns in _JOINS.items():
            await connection.execute(f"CREATE TABLE {name} ({columns})")
        await connection.execute("INSERT INTO alembic_version VALUES ($1)", REVISION)
        for table, rows in world.rows.items():
            for row in rows:
                await _insert(connection, table, row)
    finally:
        await connection.close()


async def _insert(connection: asyncpg.Connection, table: str, row: dict[str, Any]) -> None:
    # As text, which Postgres makes what the column is.
    values = [json.dumps(one) if isinstance(one, list | dict) else one for one in row.values()]
    columns = ", ".join(f'"{name}"' for name in row)
    casts = {"embedding": "::text::vector"}
    places = ", ".join(f"${number}{casts.get(name, '')}" for number, name in enumerate(row, 1))
    await connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({places})", *values)
