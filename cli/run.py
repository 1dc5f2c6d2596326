"""The process of `loci run`: settings, the lock on LOCI_HOME, signals."""

from __future__ import annotations

import asyncio
import os
import signal

from cli.errors import CliError
from cli.home import Home
from cli.settings import RunSettings
from cli.supervisor import Supervisor
from services.common.settings import SettingsError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run() -> None:
    """Serve until a signal. Raises CliError, with status 2 for a setting."""
    os.umask(0o077)
    try:
        settings = RunSettings.from_environment(os.environ)
    except SettingsError as error:
        raise CliError(str(error), code=2) from None
    home = Home(settings.home)
    home.make()
    with home.locked():
        asyncio.run(_serve(Supervisor(settings, home)))


async def _serve(supervisor: Supervisor) -> None:
    stop_signal = asyncio.Event()
    for number in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop_signal.set)
    work = asyncio.create_task(supervisor.run())
    stop = asyncio.create_task(stop_signal.wait())
    await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
    if not work.done():
        print("\nstopping ...", flush=True)
    work.cancel()
    stop.cancel()
    await asyncio.wait({work})
    await supervisor.stop()
    if not work.cancelled():
        work.result()
