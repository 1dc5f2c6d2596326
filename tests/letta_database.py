"""A database as the Letta V1 server 0.16.8 (retired) leaves it, made by the tests: its real schema, and the rows of a
World in it.
"""

import base64
import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
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

SCHEMA = Path(__file__).parent / "fixtures" / "letta-0168-schema.sql"
# Columns that must hold something and have no default, with what stands there where a row does not say.
_COLUMNS = """
SELECT table_name, column_name, udt_name, is_nullable = 'NO' AND column_default IS NULL AS required
FROM information_schema.columns WHERE table_schema = 'public'
"""
_BLANKS: dict[str, Any] = {
    "varchar": "",
    "text": "",
    "json": "{}",
    "bool": False,
    "int4": 0,
    "int8": 0,
    "timestamptz": BEGIN,
    "vectordbprovider": "NATIVE",
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
        """Adds a row; lists and objects become JSON. Its common columns are filled when it is stored."""
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
        await connection.execute(SCHEMA.read_text())
        columns: dict[str, dict[str, asyncpg.Record]] = {}
        for column in await connection.fetch(_COLUMNS):
            columns.setdefault(column["table_name"], {})[column["column_name"]] = column
        # Foreign keys are not checked: some databases were restored so, and hold rows that refer to nothing.
        await connection.execute("SET session_replication_role = replica")
        await connection.execute("INSERT INTO alembic_version VALUES ($1)", REVISION)
        for table, rows in world.rows.items():
            for number, row in enumerate(rows):
                await _insert(connection, table, _filled(columns[table], number, row))
    finally:
        await connection.close()


def _filled(columns: dict[str, asyncpg.Record], number: int, row: dict[str, Any]) -> dict[str, Any]:
    """Returns the row with its common columns, and something in those that may not be null."""
    required = [name for name, one in columns.items() if one["required"] and name not in row]
    blank = {name: _BLANKS[columns[name]["udt_name"]] for name in required}
    common = {"organization_id": ORGANIZATION, "created_at": BEGIN + timedelta(minutes=number)}
    return blank | {name: value for name, value in common.items() if name in columns} | row


async def _insert(connection: asyncpg.Connection, table: str, row: dict[str, Any]) -> None:
    # As text, which Postgres makes what the column is.
    values = [json.dumps(one) if isinstance(one, list | dict) else one for one in row.values()]
    columns = ", ".join(f'"{name}"' for name in row)
    casts = {"embedding": "::text::vector"}
    places = ", ".join(f"${number}{casts.get(name, '')}" for number, name in enumerate(row, 1))
    await connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({places})", *values)
