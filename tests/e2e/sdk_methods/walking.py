"""The methods of the official client, found by walking its resources, and the request that each of them makes."""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from letta_client import Letta
from letta_client._resource import SyncAPIResource

_CALL = re.compile(r'self\._?(get|post|put|patch|delete|get_api_list)\(\s*(?:path_template\(\s*)?"([^"]+)"')
_VIEWS = ("with_raw_response", "with_streaming_response")
# Of every method: how it is sent, not what.
_OPTIONS = {"self", "extra_headers", "extra_query", "extra_body", "timeout"}
# Methods of the client itself that call a route.
_OF_THE_CLIENT = ("health",)


@dataclass(frozen=True)
class Method:
    """A method of the client: `agents.blocks.attach`, the request it makes, and its parameters."""

    name: str
    verb: str
    path: str
    required: tuple[str, ...]
    optional: tuple[str, ...]

    @property
    def in_path(self) -> tuple[str, ...]:
        """The parameters that stand in the path."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    def of(self, client: Any) -> Callable[..., Any]:
        """The bound method of `client`."""
        found = client
        for part in self.name.split("."):
            found = getattr(found, part)
        bound: Callable[..., Any] = found
        return bound

    def matches(self, verb: str, path: str) -> bool:
        """Returns whether this method makes such a request."""
        pattern = re.sub(r"{\w+}", "[^/]+", self.path.rstrip("/")) + "/?"
        return verb == self.verb and re.fullmatch(pattern, path) is not None


def methods() -> dict[str, Method]:
    """Every method of the client that makes a request, by its name."""
    client = Letta(base_url="http://127.0.0.1:1")
    try:
        found = [_method(name, getattr(client, name)) for name in _OF_THE_CLIENT]
        return {method.name: method for method in (*found, *_walk(client, ""))}
    finally:
        client.close()


def _walk(owner: Any, prefix: str) -> Iterator[Method]:
    for name in sorted(dir(type(owner))):
        if name.startswith("_") or name in _VIEWS:
            continue
        if inspect.isfunction(getattr(type(owner), name)) and isinstance(owner, SyncAPIResource):
            yield _method(f"{prefix}{name}", getattr(owner, name))
        elif isinstance(part := getattr(owner, name), SyncAPIResource):
            yield from _walk(part, f"{prefix}{name}.")


def _method(name: str, function: Callable[..., Any]) -> Method:
    called = _CALL.search(inspect.getsource(function))
    assert called, f"{name}: the client's code has another form now; its request was not found"
    verb = "GET" if called[1] == "get_api_list" else called[1].upper()
    parameters = [one for one in inspect.signature(function).parameters.values() if one.name not in _OPTIONS]
    required = tuple(one.name for one in parameters if one.default is inspect.Parameter.empty)
    optional = tuple(one.name for one in parameters if one.name not in required)
    return Method(name, verb, called[2], required, optional)
