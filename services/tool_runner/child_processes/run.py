"""Python of ours in a process that holds nothing and lives for one request, for data that could exhaust a process."""

import asyncio
import subprocess
import sys
from pathlib import Path

from services.common.processes import Child

_ROOT = Path(__file__).resolve().parents[3]


async def start(module: str) -> Child:
    """Returns a process that runs `main()` of `module`, which limits itself.

    -I: neither the environment nor the working directory has a say in it.
    """
    program = f"import sys; sys.path.insert(0, {str(_ROOT)!r})\nfrom {module} import main; main()"
    command = (sys.executable, "-I", "-B", "-c", program)
    return await Child.start(*command, environment={}, errors=subprocess.DEVNULL)


async def ask(module: str, request: bytes, seconds: float) -> bytes:
    """Returns what `main()` of `module` writes to stdout for a request on stdin; b"" where it fails or takes longer."""
    child = await start(module)
    try:
        async with asyncio.timeout(seconds):
            await child.send(request)
            child.end_input()
            output = await child.reader.read()
            status = await child.wait()
    except (TimeoutError, ConnectionError):
        return b""
    finally:
        await child.end()
    return output if status == 0 else b""
