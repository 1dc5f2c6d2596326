"""The numbers of embedding models: a handle and a length of vectors have one, for all tenants."""

import asyncpg

_MODEL = "SELECT id FROM memory.embedding_models WHERE handle = $1 AND dimensions = $2"
_NEW_MODEL = "INSERT INTO memory.embedding_models (handle, dimensions) VALUES ($1, $2) ON CONFLICT DO NOTHING"


async def embedding_model_id(pool: asyncpg.Pool, handle: str, dimensions: int) -> int:
    """Known from now on, if it was not. Rows of this table never change."""
    number = await pool.fetchval(_MODEL, handle, dimensions)
    if number is None:
        await pool.execute(_NEW_MODEL, handle, dimensions)
        number = await pool.fetchval(_MODEL, handle, dimensions)
    assert isinstance(number, int)
    return number
