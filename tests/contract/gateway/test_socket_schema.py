"""The documented form of frames is the one that is taken and sent."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gateway.sockets import frames as sockets
from gateway.sockets.schema import schema

DOCS = Path(__file__).resolve().parents[3] / "docs"
RUN_ID = "run-00000000-0000-4000-8000-00000000000a"


def test_the_schema_is_the_models() -> None:
    written = (DOCS / "websocket.schema.json").read_text()
    assert written == schema(), "run: python -m gateway.sockets.schema > docs/websocket.schema.json"


def test_every_type_is_in_the_document() -> None:
    described = json.loads(schema())
    types = {
        definition["properties"]["type"]["const"]
        for definition in described["$defs"].values()
        if "const" in definition.get("properties", {}).get("type", {})
    }
    documented = set(re.findall(r"^\| `(\w+)` \|", (DOCS / "websocket.md").read_text(), re.MULTILINE))
    documented -= {"type"}  # heads of the tables
    assert documented <= types
    assert documented == {
        *("send", "approve", "cancel", "resume", "ping"),
        *("accepted", "cancelling", "end", "error", "pong"),
    }


@pytest.mark.parametrize(
    ("side", "frame", "valid"),
    [
        ("client", {"type": "send", "input": "hi", "stream_tokens": True}, True),
        ("client", {"type": "approve", "approvals": [{"tool_call_id": "c1", "approve": True}]}, True),
        ("client", {"type": "cancel"}, True),
        ("client", {"type": "resume", "run_id": RUN_ID, "starting_after": 3}, True),
        ("client", {"type": "resume"}, False),
        ("client", {"type": "shout"}, False),
        ("server", sockets.Accepted(run_id=RUN_ID).model_dump(), True),
        ("server", sockets.Error(status=404, detail="no").model_dump(), True),
        ("server", {"message_type": "assistant_message", "run_id": RUN_ID, "seq_id": 1, "content": "hi"}, True),
        ("server", {"message_type": "assistant_message"}, False),
    ],
)
def test_frames_against_it(side: str, frame: dict[str, Any], valid: bool) -> None:
    described = json.loads(schema())
    validator = Draft202012Validator(described["properties"][side] | {"$defs": described["$defs"]})
    assert validator.is_valid(frame) is valid
