"""Logs: one JSON object a line on stderr, with the ids of trace, run and tenant. Never what users wrote."""

import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import orjson

from services.common.context import current_or_none

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
# Chatty below warning, and about things that say nothing to an operator.
_QUIET = (
    "asyncio",
    "grpc",
    "httpx",
    "httpx2",
    "httpcore2",
    "httpcore",
    "urllib3",
    "opentelemetry",
    "docker",
    "alembic",
)
# They log what servers sent, and as errors of ours what is theirs; who calls them tells it.
_SILENT = ("client", "mcp", "sse_starlette")


class JsonFormatter(logging.Formatter):
    """`logger.info("run ended", extra={"stop_reason": "end_turn"})`: what is in `extra` becomes fields."""

    def __init__(self, service_name: str, trace_id: Callable[[], str]) -> None:
        super().__init__()
        self._service = service_name
        self._trace_id = trace_id

    def format(self, record: logging.LogRecord) -> str:
        """Prints one line."""
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "service": self._service,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if trace_id := self._trace_id():
            fields["trace_id"] = trace_id
        if context := current_or_none():
            fields["organization_id"] = context.organization_id
            if context.run_id is not None:
                fields["run_id"] = context.run_id
        fields.update((key, value) for key, value in vars(record).items() if key not in _PLAIN)
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        try:
            return orjson.dumps(fields, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
        except TypeError:  # lone surrogates and huge integers, which the standard library takes
            return json.dumps(fields, default=str)


def log_to_stderr(service_name: str, level: str, trace_id: Callable[[], str]) -> None:
    """Makes JSON on stderr the one log of this process. `trace_id` names the current trace, or is empty."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(service_name, trace_id))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in _SILENT:
        logging.getLogger(name).setLevel(logging.CRITICAL)
