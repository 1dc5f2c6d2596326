"""The process that runs a model (child.py): started when it is first needed, and again after its end."""

import asyncio
import os
import subprocess
import sys
from base64 import b64decode
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import orjson

from services.common.processes import Child
from services.llm_gateway.vendors.local.folder import ModelFolder

# Texts of one line: a query need not wait for more of those who store much.
_TEXTS_IN_A_LINE = 4
_LINE_SECONDS = 60.0
_START_SECONDS = 120.0
_LONGEST_LINE = 16 * 1024 * 1024
_COMMAND = (
    *(sys.executable, "-I", "-B", "-c"),
    f"import sys; sys.path[:] = {sys.path!r}\nfrom services.llm_gateway.vendors.local.child import main; main()",
)


class ModelUnusable(Exception):
    """The model cannot be loaded; the text says why."""


class ModelProcessEnded(Exception):
    """The process ended or was too slow, as it does where its memory is too small; the text says which."""


class ModelProcess:
    """One process. Its requests have turns: those of one text wait for a line of the others at most."""

    def __init__(self, folder: ModelFolder, *, threads: int, memory_mib: int) -> None:
        self._options = {
            "graph": str(folder.graph),
            "tokenizer": str(folder.tokenizer),
            "longest": folder.longest,
            "first_token": folder.first_token,
            "threads": threads,
            "memory_bytes": memory_mib * 1024 * 1024,
        }
        # Numpy's own threads are not needed: ONNX Runtime computes.
        self._environment = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        self._child: Child | None = None
        self._turn, self._many = asyncio.Lock(), asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """Returns the id of the process, None where none runs."""
        return None if self._child is None else self._child.pid

    async def embed(self, texts: Sequence[str]) -> tuple[list[Sequence[float]], int]:
        """Returns a vector for each text, and how many tokens they have. Raises ModelUnusable, ModelProcessEnded."""
        vectors: list[Sequence[float]] = []
        tokens = 0
        for reply, count in await self._portions({}, texts):
            numbers: memoryview[float] = memoryview(b64decode(reply["vectors"])).cast("f")
            length = len(numbers) // count
            vectors += [numbers[place * length : (place + 1) * length] for place in range(count)]
            tokens += reply["tokens"]
        return vectors, tokens

    async def compare(self, query: str, texts: Sequence[str]) -> list[float]:
        """Returns how well each text answers the query, 0 to 1. Raises ModelUnusable, ModelProcessEnded."""
        replies = await self._portions({"query": query}, texts)
        return [score for reply, _ in replies for score in reply["scores"]]

    async def close(self) -> None:
        """Ends the process."""
        child, self._child = self._child, None
        if child is not None:
            await child.end()

    async def _portions(self, more: Mapping[str, Any], texts: Sequence[str]) -> list[tuple[Mapping[str, Any], int]]:
        replies = []
        async with self._many if len(texts) > 1 else nullcontext():
            for begin in range(0, len(texts), _TEXTS_IN_A_LINE):
                some = texts[begin : begin + _TEXTS_IN_A_LINE]
                line = orjson.dumps({**more, "texts": some}, option=orjson.OPT_APPEND_NEWLINE)
                async with self._turn:
                    replies.append((await self._ask(line), len(some)))
        return replies

    async def _ask(self, line: bytes) -> Mapping[str, Any]:
        answered = False
        try:
            child = await self._started()
            async with asyncio.timeout(_LINE_SECONDS):
                await child.send(line)
                answer = await child.reader.readline()
            answered = answer.endswith(b"\n")
        except TimeoutError:
            raise ModelProcessEnded(f"it took longer than {_LINE_SECONDS:g} s") from None
        except ConnectionError:
            pass
        finally:
            if not answered:
                await self.close()
        if not answered:
            raise ModelProcessEnded("its process ended; it may need more memory")
        reply: Mapping[str, Any] = orjson.loads(answer)
        return reply

    async def _started(self) -> Child:
        """Returns the process once its model is loaded. Raises ModelUnusable, ModelProcessEnded, ConnectionError."""
        if self._child is None:
            self._child = await Child.start(
                *_COMMAND,
                orjson.dumps(self._options).decode(),
                environment=self._environment,
                errors=subprocess.DEVNULL,
                longest_line=_LONGEST_LINE,
            )
            try:
                async with asyncio.timeout(_START_SECONDS):
                    line = await self._child.reader.readline()
            except TimeoutError:
                raise ModelProcessEnded(f"it was not loaded within {_START_SECONDS:g} s") from None
            if not line.endswith(b"\n"):
                raise ConnectionResetError
            if "error" in (reply := orjson.loads(line)):
                raise ModelUnusable(reply["error"])
        return self._child


def default_threads() -> int:
    """Returns half of the machine's cores, at least one: Loci itself needs some."""
    return max(1, (os.cpu_count() or 1) // 2)
