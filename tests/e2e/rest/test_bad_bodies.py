"""Bad input to every route that takes a body, made out of the OpenAPI document: a 4xx, and nothing is written."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import orjson
import pytest
from jsonschema import Draft202012Validator

from tests.e2e.sdk_methods.world import World
from tests.gateway_document import openapi

JSON = {"content-type": "application/json"}
DEEP = b'{"zzz":' + b"[" * 5_000 + b"]" * 5_000 + b"}"
DEEPISH = b'{"zzz":' + b"[" * 150 + b"]" * 150 + b"}"
# No body is right that is one of these, whatever the route.
RAW = {
    "not JSON": b"{not json",
    "a list": b"[1]",
    "a text": b'"text"',
    "a number": b"5",
    "NUL": b'{"zzz": "\\u0000"}',
    "NUL in a name": b'{"z\\u0000": 1}',
    "not UTF-8": b'{"zzz": "\xff"}',
    "NaN": b'{"zzz": NaN}',
    "the same name twice": b'{"zzz": 1, "zzz": 2}',
    "the same name twice, deeper": b'{"zzz": [{"a": "\\u0022", "a": ":"}]}',
    "nested too deep": DEEP,
    "nested deep": DEEPISH,
}
# Parsed in one place: of each route it is enough to know that it uses that.
FEW = ("not JSON", "a list", "NUL", "the same name twice", "nested deep")
# What no lenient reading takes for the value of another type.
WRONG: tuple[Any, ...] = ("unheard of", 1.5, {"unheard": 1.5}, [1.5], -(10**30))
NO_ID = "other-42"
COMPONENTS = {"components": {"schemas": openapi()["components"]["schemas"]}}


def _operations(media_type: str) -> dict[str, tuple[str, str, Any]]:
    found = {}
    for path, operations in openapi()["paths"].items():
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {})
            if media_type in content:
                found[f"{method.upper()} {path}"] = (method.upper(), path, content[media_type])
    return found


BODIES = _operations("application/json")
UPLOADS = _operations("multipart/form-data")
LISTS = {
    path: {one["name"] for one in operations["get"].get("parameters", ())} & {"after", "before", "page_token", "cursor"}
    for path, operations in openapi()["paths"].items()
    if "get" in operations
}


@pytest.fixture(scope="module")
def http(world: World) -> Iterator[httpx.Client]:
    """Plain HTTP to the stack."""
    with httpx.Client(base_url=world.url, timeout=30) as client:
        yield client


@pytest.fixture(scope="module", autouse=True)
def nothing_is_written(http: httpx.Client, there: Mapping[str, str]) -> Iterator[None]:
    """Compares what is stored before the module's tests and after: nothing has come, and what the paths name is there.

    Other things may go meanwhile: what earlier modules deleted is deleted in the background.
    """
    before, agent = _ids(http, there), _agent(http, there)
    yield
    after = _ids(http, there)
    assert {path: sorted(ids - before[path]) for path, ids in after.items() if ids - before[path]} == {}
    named = set(there.values())
    assert {path: named & ids for path, ids in after.items()} == {path: named & ids for path, ids in before.items()}
    assert _agent(http, there) == agent


def _ids(http: httpx.Client, there: Mapping[str, str]) -> dict[str, set[str]]:
    of_agent = {"agent_id": there["agent_id"]}
    whole = ("agents", "archives", "blocks", "folders", "mcp-servers", "providers", "sandbox-config", "tools")
    lists: list[tuple[str, dict[str, str]]] = [
        *((path, {}) for path in whole),
        *((path, of_agent) for path in ("runs", "conversations")),
        (f"agents/{there['agent_id']}/messages", {}),
    ]
    found = {path: http.get(f"/v1/{path}", params=query | {"limit": "1000"}).json() for path, query in lists}
    return {path: {one["id"] for one in page} for path, page in found.items()}


def _agent(http: httpx.Client, there: Mapping[str, str]) -> Any:
    agent = http.get(f"/v1/agents/{there['agent_id']}").json()
    return {key: value for key, value in agent.items() if key != "updated_at"}


def _path(path: str, there: Mapping[str, str]) -> str:
    return re.sub(r"{(\w+)}", lambda found: there.get(found[1], "nothing"), path)


def _check(answer: httpx.Response, what: str) -> None:
    said = f"{answer.request.method} {answer.request.url.path}, {what}: {answer.status_code} {answer.text[:300]}"
    assert 400 <= answer.status_code < 500, said
    body = answer.json()
    assert isinstance(body.get("detail"), str) or "error" in body, said


@pytest.mark.parametrize("operation", BODIES)
def test_bodies_that_are_no_bodies(http: httpx.Client, there: Mapping[str, str], operation: str) -> None:
    method, path, _ = BODIES[operation]
    for what, body in RAW.items():
        if what not in FEW and operation != "POST /v1/agents":
            continue
        _check(http.request(method, _path(path, there), content=body, headers=JSON), what)


@pytest.mark.parametrize("operation", BODIES)
def test_values_of_wrong_types(http: httpx.Client, there: Mapping[str, str], operation: str) -> None:
    method, path, content = BODIES[operation]
    given = content.get("example") or {}
    for name, schema in _properties(content["schema"]).items():
        validator = Draft202012Validator(schema | COMPONENTS)
        # Times may be told as seconds, too.
        numbers = "date-time" in str(schema)
        wrongs = [one for one in WRONG if not ((numbers and isinstance(one, int | float)) or validator.is_valid(one))]
        for wrong in wrongs[:2]:
            body = _huge(given, name, wrong) if isinstance(wrong, int) else orjson.dumps(given | {name: wrong})
            answer = http.request(method, _path(path, there), content=body, headers=JSON)
            _check(answer, f"{name}={wrong!r}")


@pytest.mark.parametrize("operation", UPLOADS)
def test_uploads_without_a_file(http: httpx.Client, there: Mapping[str, str], operation: str) -> None:
    method, path, _ = UPLOADS[operation]
    url = _path(path, there)
    _check(http.request(method, url), "no body")
    _check(http.request(method, url, json={"file": "a"}), "JSON")
    _check(http.request(method, url, data={"file": "a"}), "a form")
    _check(http.request(method, url, files={"other": ("a.txt", b"a")}), "another part")
    multipart = {"content-type": "multipart/form-data; boundary=x"}
    _check(http.request(method, url, content=b"--x\r\nnot a part", headers=multipart), "no part")
    cut = b'--x\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\nabc'
    _check(http.request(method, url, content=cut, headers=multipart), "cut off")


# The tags are their own cursors; models have none, and another form for OpenAI's clients.
WITHOUT_IDS = {"/v1/tags", "/v1/models"}


@pytest.mark.parametrize("path", [path for path, cursors in LISTS.items() if cursors and path not in WITHOUT_IDS])
def test_cursors_that_are_none(http: httpx.Client, there: Mapping[str, str], path: str) -> None:
    for cursor in LISTS[path]:
        for value in ("nonsense", "../..", "agent-42"):
            if path == "/v1/conversations/{conversation_id}/messages":
                # As in the reference, the first page.
                assert http.get(_path(path, there), params={cursor: value}).status_code == 200
                continue
            _check(http.get(_path(path, there), params={cursor: value}), f"{cursor}={value}")


def test_bodies_that_are_too_large(http: httpx.Client, there: Mapping[str, str]) -> None:
    body = b'{"zzz": "' + b"x" * 50_000_000 + b'"}'
    for operation in ("POST /v1/agents", "POST /v1/agents/{agent_id}/messages"):
        method, path, _ = BODIES[operation]
        answer = http.request(method, _path(path, there), content=body, headers=JSON)
        assert answer.status_code == 413, operation
        assert "LOCI_MAX_BODY_MIB" in answer.json()["detail"]


def test_both_of_messages_and_input(http: httpx.Client, there: Mapping[str, str]) -> None:
    both = {"messages": [{"role": "user", "content": "a"}], "input": "b"}
    turns = [
        operation
        for operation, (_, _, told) in BODIES.items()
        if {"messages", "input"} <= set(_properties(told["schema"]))
    ]
    assert len(turns) >= 4
    for operation in turns:
        method, path, _ = BODIES[operation]
        answer = http.request(method, _path(path, there), json=both)
        assert answer.status_code == 422, operation
        assert "input" in answer.json()["detail"]


def _properties(schema: Any) -> dict[str, Any]:
    if "$ref" in schema:
        return _properties(COMPONENTS["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    found: dict[str, Any] = dict(schema.get("properties", {}))
    for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        found |= _properties(one)
    return found


def _huge(given: Mapping[str, Any], name: str, value: int) -> bytes:
    """JSON with a number that is larger than what orjson writes."""
    rest = orjson.dumps({key: one for key, one in given.items() if key != name})[1:-1]
    return b"{" + orjson.dumps(name) + b":" + str(value).encode() + (b"," + rest if rest else b"") + b"}"
