"""A fake Azure OpenAI: both of its APIs (dated, with deployments in the path, and v1) on OpenAI's fake.

Deployments are called by their own names, and answer with the name of their model. Where `lists_deployments` is off,
the old list of them is gone, as it is for resources that never had it.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from tests.fakes import openai_wire
from tests.fakes.http import Request
from tests.fakes.openai_server import EMBEDDING_DIMENSIONS, fault
from tests.fakes.responses_server import ResponsesServer
from tests.fakes.script import DEFAULT_REPLY, Reply, Seen
from tests.fakes.server import JSON_HEADERS, Planned, serve_forever

DEPLOYMENTS = {
    "my-mini": "gpt-4o-mini",
    "my-five": "gpt-5",
    "old": "gpt-35-turbo",
    "text-embedding-3-small": "text-embedding-3-small",
}
_DEPLOYED = re.compile(r"/openai/deployments/([^/]+)(/chat/completions|/embeddings)")
_V1 = "/openai/v1"
_SAFE = {"filtered": False, "severity": "safe"}
_FILTERS = [{"prompt_index": 0, "content_filter_results": {"hate": _SAFE, "violence": _SAFE}}]
# What its edge says in a shape of its own.
_EDGE: Mapping[str, tuple[str, str]] = {
    "authentication": ("401", "Access denied due to invalid subscription key or wrong API endpoint."),
    "rate_limit": ("429", "Requests have exceeded the call rate limit of your pricing tier. Please retry later."),
    "model_not_found": ("DeploymentNotFound", "The API deployment for this resource does not exist."),
}


class AzureServer(ResponsesServer):
    """A fake Azure OpenAI resource."""

    api_path = ""
    responses_paths = (f"{_V1}/responses",)

    def __init__(self, port: int = 0, *, record: bool = True, lists_deployments: bool = True) -> None:
        super().__init__(port, models=[*DEPLOYMENTS.values()], record=record)
        self.lists_deployments = lists_deployments

    def respond(self, request: Request, body: Any) -> tuple[Reply, Planned]:
        if self.authorized(request):
            return DEFAULT_REPLY, edge("authentication")
        dated = not request.path.startswith(_V1)
        version = request.query.get("api-version", "")
        if dated and not re.fullmatch(r"\d{4}-\d\d-\d\d(-preview)?", version):
            return DEFAULT_REPLY, gone()
        reply, planned = self._routed(request, body, version)
        if reply.error in _EDGE and planned.status >= 400:
            known = _EDGE[str(reply.error)]
            planned = replace(planned, body=_body(known[0], reply.message or known[1]))
        return reply, planned

    def authorized(self, request: Request) -> Planned | None:
        """The refusal of a request without a key."""
        return None if request.headers.get("api-key") else edge("authentication")

    def _routed(self, request: Request, body: Any, version: str) -> tuple[Reply, Planned]:
        path = request.path
        if found := _DEPLOYED.fullmatch(path):
            name, path = found.groups()
            return self._called(path, {**(body or {}), "model": name})
        if request.method == "POST" and path == "/openai/responses" and version >= "2025-03-01":
            return self._called("/responses", body)
        if request.method == "POST" and path.startswith(_V1):
            return self._called(path.removeprefix(_V1), body)
        lists = {"/openai/deployments": self._deployments, f"{_V1}/models": self._models}
        if request.method == "GET" and path in lists:
            reply = self.script.choose(Seen("", "", "", 0, False, (), {}, "models"))
            return reply, fault(reply) or lists[path]()
        return DEFAULT_REPLY, gone()

    def _called(self, path: str, body: Any) -> tuple[Reply, Planned]:
        if isinstance(body, dict) and body.get("model") not in DEPLOYMENTS:
            return DEFAULT_REPLY, edge("model_not_found")
        body = self.named(body)
        match path:
            case "/chat/completions":
                reply, planned = self._chat(body)
                return reply, _with_filters(planned)
            case "/embeddings":
                return self._embeddings(body)
            case "/responses":
                return self.create(body)
            case _:
                return DEFAULT_REPLY, gone()

    def named(self, body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "model": DEPLOYMENTS.get(body["model"], body["model"])}

    def _deployments(self) -> Planned:
        if not self.lists_deployments:
            return gone()
        shared = {"object": "deployment", "status": "succeeded", "owner": "organization-owner"}
        data = [{"id": name, "model": model, **shared} for name, model in DEPLOYMENTS.items()]
        data.append({"id": "unready", "model": "gpt-5", **shared, "status": "creating"})
        return Planned(200, JSON_HEADERS, orjson.dumps({"object": "list", "data": data}))

    def _models(self) -> Planned:
        """Base models, and one that is there to be tuned alone."""
        data = [_model(name, inference=True) for name in ("gpt-5", "gpt-4o-mini", "text-embedding-3-small", "dall-e-3")]
        data.append(_model("babbage-002", inference=False))
        return Planned(200, JSON_HEADERS, orjson.dumps({"object": "list", "data": data}))


def _model(name: str, *, inference: bool) -> dict[str, Any]:
    embeds = name in EMBEDDING_DIMENSIONS
    can = {"fine_tune": not inference, "inference": inference, "completion": False, "embeddings": embeds}
    can["chat_completion"] = inference and not embeds and name != "dall-e-3"
    return {
        "id": name,
        "object": "model",
        "status": "succeeded",
        "capabilities": can,
        "lifecycle_status": "generally-available",
    }


def _with_filters(planned: Planned) -> Planned:
    """Adds the results of Azure's content filters before and into a chat."""
    if planned.status != 200:
        return planned
    if planned.frames is not None:
        first = {"id": "", "object": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": _FILTERS}
        return replace(planned, frames=[b"data: " + orjson.dumps(first) + b"\n\n", *planned.frames])
    body = orjson.loads(planned.body) if planned.headers["content-type"] == "application/json" else None
    if body is None:
        return planned
    return replace(planned, body=orjson.dumps({**body, "prompt_filter_results": _FILTERS}))


def edge(kind: str) -> Planned:
    """An error of the edge before the models."""
    return Planned(openai_wire.ERRORS[kind][0], JSON_HEADERS, _body(*_EDGE[kind]))


def gone() -> Planned:
    """Answers requests for addresses that the resource does not have."""
    return Planned(404, JSON_HEADERS, _body("404", "Resource not found"))


def _body(code: str, message: str) -> bytes:
    return orjson.dumps({"error": {"code": code, "message": message}})


if __name__ == "__main__":
    serve_forever(AzureServer)
