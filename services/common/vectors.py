"""Half-precision vectors over asyncpg, in pgvector's binary form."""

from collections.abc import Sequence
from struct import pack
from typing import Any

from services.common.settings import SettingsError

_SCHEMA = """
SELECT n.nspname FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'vector'
"""


async def register(connection: Any) -> None:
    """Makes `halfvec` the bytes of `encode` on this connection; the extension may live in any schema.

    Bytes, because asyncpg would take a list of vectors for an array of two dimensions.

    Raises SettingsError where there is no extension.
    """
    schema = await connection.fetchval(_SCHEMA)
    if schema is None:
        raise SettingsError("the database has no extension pgvector; as its owner run: CREATE EXTENSION vector")
    await connection.set_type_codec("halfvec", schema=schema, encoder=bytes, decoder=bytes, format="binary")


def encode(values: Sequence[float]) -> bytes:
    """Dimensions and a spare field as 16-bit integers, then 16-bit floats, all big-endian."""
    return pack(f">HH{len(values)}e", len(values), 0, *values)
