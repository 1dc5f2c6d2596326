"""Answers as JSON by orjson; no validation, no second pass."""

from collections.abc import Mapping
from typing import Any

import orjson
from starlette.responses import Response


def json_response(content: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Returns `content` (dicts, lists, scalars) as application/json."""
    return Response(orjson.dumps(content), status_code=status, headers=headers, media_type="application/json")
