"""A fake MiniMax, which speaks Anthropic's dialect below /anthropic.

Habits of its own: temperatures above 0 and up to 1 are taken, what it does not know is ignored, its older models see no
images, its models list tells no limits, and each reply has a status beside Anthropic's fields.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from tests.fakes.anthropic_rules import PARAMETERS, blocks_of, refusal
from tests.fakes.anthropic_server import AnthropicServer
from tests.fakes.http import Request
from tests.fakes.script import Reply
from tests.fakes.server import JSON_HEADERS, HttpReply, serve_forever

CHAT_MODELS = ("MiniMax-M3", "MiniMax-M2.7", "MiniMax-M2.5")
_SEEING = ("MiniMax-M3",)
_PREFIX = "/anthropic"


class MiniMaxServer(AnthropicServer):
    """A fake MiniMax."""

    api_path = _PREFIX

    def __init__(self, port: int = 0, *, models: Sequence[str] = CHAT_MODELS, record: bool = True) -> None:
        super().__init__(port, models=models, record=record, max_output=1_000_000, counts_tokens=False)

    def respond(self, request: Request, body: Any) -> tuple[Reply, HttpReply]:
        """See FakeServer.respond."""
        if (request.method, request.path) == ("GET", f"{_PREFIX}/v1/models"):
            return Reply(), self._models()
        reply, planned = super().respond(replace(request, path=request.path.removeprefix(_PREFIX)), body)
        if planned.frames is None and planned.status == 200 and reply.raw_body is None:
            status = {"status_code": 0, "status_msg": ""}
            planned = replace(planned, body=orjson.dumps({**orjson.loads(planned.body), "base_resp": status}))
        return reply, planned

    def complaint(self, body: Any, headers: Mapping[str, str]) -> str | None:
        """See AnthropicServer.complaint."""
        if not isinstance(body, dict):
            return "invalid params"
        if not 0 < body.get("temperature", 1.0) <= 1:
            return "invalid params, temperature must be in (0.0, 1.0]"
        known = {name: value for name, value in body.items() if name in PARAMETERS - {"output_config", "thinking"}}
        if body.get("model") not in _SEEING and _has_images(body):
            return f"invalid params, {body.get('model')} does not support image input"
        return refusal(known, headers["anthropic-version"])

    def _models(self) -> HttpReply:
        data = [{"id": name, "display_name": name, "type": "model"} for name in self.chat_models]
        ends = {"first_id": self.chat_models[0], "last_id": self.chat_models[-1], "has_more": False}
        return HttpReply(200, JSON_HEADERS, orjson.dumps({"data": data, **ends}))


def _has_images(body: Mapping[str, Any]) -> bool:
    blocks = [block for message in body.get("messages", ()) for block in blocks_of(message)]
    inner = [part for block in blocks if isinstance(block.get("content"), list) for part in block["content"]]
    return any(block["type"] == "image" for block in [*blocks, *inner])


if __name__ == "__main__":
    serve_forever(MiniMaxServer)
