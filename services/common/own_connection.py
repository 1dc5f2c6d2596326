"""A connection of its own for what must not wait behind others: beats of leases.

It is ended the moment that it does not answer, or that whoever waits gives up; the next statement gets a new one. So
neither a pool that is used up nor a silent server holds a beat for longer than its patience.
"""

import asyncio
from typing import Any

from services.common.database import Connection, DatabaseSilent, connect, connect_options


class OwnConnection:
    """Statements one after another. `patience`: seconds for a statement, and for the connection before it."""

    def __init__(self, url: str, *, patience: float, pgbouncer: bool = False) -> None:
        self._url = url
        self._patience = patience
        self._pgbouncer = pgbouncer
        self._connection: Any = None
        self._turn = asyncio.Lock()

    async def execute(self, statement: str, *args: Any) -> None:
        """Executes a statement. Raises what `database.is_lost` knows where the database does not answer in time."""
        await self._ask("execute", statement, *args)

    async def fetchrow(self, statement: str, *args: Any) -> Any:
        """Returns the first row of a statement, or None; raises as `execute`."""
        return await self._ask("fetchrow", statement, *args)

    async def close(self) -> None:
        """Ends the connection."""
        self._drop()

    async def _ask(self, how: str, statement: str, *args: Any) -> Any:
        async with self._turn:
            try:
                async with asyncio.timeout(self._patience):
                    if self._connection is None or self._connection.is_closed():
                        options = connect_options(pgbouncer=self._pgbouncer)
                        self._connection = await connect(self._url, connection_class=Connection, **options)
                    answer = await getattr(self._connection, how)(statement, *args)
            except TimeoutError as error:
                self._drop()
                raise DatabaseSilent("the database did not answer in time") from error
            except BaseException:
                # What became of the statement is not known, also where our caller gave up.
                self._drop()
                raise
            return answer

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None
