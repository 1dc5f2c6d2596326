"""Runs Alembic for one service, from Python and without alembic.ini."""

import asyncio
import logging
import time
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from services.common.engine import make_engine
from services.common.migrations.locks import limit_waiting

_PAUSE_SECONDS = 1.0
_PATIENCE_SECONDS = 600.0
_LOCK_NOT_AVAILABLE = "55P03"

_log = logging.getLogger(__name__)


async def upgrade(url: str, folder: Path, schema: str, revision: str) -> None:
    """Upgrades `schema` to `revision` with the scripts in `folder` (which holds env.py and versions/).

    What waits for a lock of those who are served is tried again for some minutes; revisions that are made stay made.
    """
    engine = make_engine(url, size=1, patience=None)
    until = time.monotonic() + _PATIENCE_SECONDS
    try:
        while True:
            try:
                async with engine.connect() as connection:
                    return await connection.run_sync(_upgrade, folder, schema, revision)
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE or time.monotonic() > until:
                    raise
                _log.warning("a migration of %s waits for a lock; it is tried again", schema)
            await asyncio.sleep(_PAUSE_SECONDS)
    finally:
        await engine.dispose()


def _upgrade(connection: Connection, folder: Path, schema: str, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes.update(connection=connection, schema=schema)
    connection.exec_driver_sql(limit_waiting())
    connection.commit()
    command.upgrade(config, revision)
