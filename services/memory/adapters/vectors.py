"""Half-precision vectors over asyncpg, in pgvector's binary form."""

from collections.abc import Sequence
from struct import pack, unpack_from
from typing import Any

from services.common.settings import SettingsError

_SCHEMA = """
SELECT n.nspname FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'vector'
"""


async def register(connection: Any) -> None:
    """Makes `halfvec` a sequence of floats on this connection; the extension may live in any schema.

    Raises SettingsError where there is no extension.
    """
    schema = await connection.fetchval(_SCHEMA)
    if schema is None:
        raise SettingsError("the database has no extension pgvector; run: python -m services.memory migrate")
    await connection.set_type_codec("halfvec", schema=schema, encoder=encode, decoder=decode, format="binary")


def encode(values: Sequence[float]) -> bytes:
    """Dimensions and a spare field as 16-bit integers, then 16-bit floats, all big-endian."""
    return pack(f">HH{len(values)}e", len(values), 0, *values)


def decode(data: bytes) -> tuple[float, ...]:
    """The inverse of `encode`."""
    (dimensions,) = unpack_from(">H", data)
    return unpack_from(f">{dimensions}e", data, 4)
