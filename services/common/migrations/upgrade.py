"""Runs Alembic for one service, from Python and without alembic.ini."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

from services.common.engine import make_engine


async def upgrade(url: str, folder: Path, schema: str, revision: str) -> None:
    """Upgrades `schema` to `revision` with the scripts in `folder` (which holds env.py and versions/)."""
    engine = make_engine(url, size=1, patience=None)
    try:
        async with engine.connect() as connection:
            await connection.run_sync(_upgrade, folder, schema, revision)
    finally:
        await engine.dispose()


def _upgrade(connection: Connection, folder: Path, schema: str, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes.update(connection=connection, schema=schema)
    command.upgrade(config, revision)
