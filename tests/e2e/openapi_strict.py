"""Checks answers against the OpenAPI document: no member too few, and none too many."""

import json
import re
from collections.abc import Iterable
from typing import Any

import httpx
from jsonschema import Draft202012Validator

_REF = "#/components/schemas/"


class Document:
    """The document of a running gateway, read strictly."""

    def __init__(self, url: str) -> None:
        self.whole: Any = httpx.get(f"{url}/openapi.json", timeout=30).raise_for_status().json()
        self._components = {"components": {"schemas": _strict(self.whole["components"]["schemas"])}}
        # Fixed parts of a path before parameters.
        self._paths = sorted(self.whole["paths"], key=lambda path: [part[:1] == "{" for part in path.split("/")])

    def operation(self, method: str, path: str) -> tuple[str, Any]:
        """The template of the path and the operation that serves a request."""
        for template in self._paths:
            pattern = re.sub(r"{\w+}", "[^/]+", template)
            operations = self.whole["paths"][template]
            if method.lower() in operations and re.fullmatch(pattern, path.rstrip("/")):
                return template, operations[method.lower()]
        raise AssertionError(f"{method} {path} is not in the document")

    def check(self, response: httpx.Response) -> None:
        """Raises AssertionError for an answer that is not in the document. Of streams only the head is looked at."""
        request = response.request
        template, operation = self.operation(request.method, request.url.path)
        where = f"{request.method} {template} -> {response.status_code}"
        told = self._resolved(operation["responses"].get(str(response.status_code)))
        assert told is not None, f"{where}: the document does not know this status"
        media_type = response.headers.get("content-type", "").partition(";")[0]
        content = told.get("content", {})
        assert media_type in content or not (media_type or content), (
            f"{where}: {media_type!r} is not in {list(content)}"
        )
        if media_type == "application/json":
            self._check(response.json() if response.read() else None, content[media_type]["schema"], where)

    def check_events(self, method: str, path: str, lines: Iterable[str]) -> int:
        """Checks the events of a stream; returns how many there were."""
        template, operation = self.operation(method, path)
        event = operation["responses"]["200"]["content"]["text/event-stream"]["schema"]
        schema = event["properties"]["data"]["anyOf"][0]["contentSchema"]
        count = 0
        for line in lines:
            if line.startswith("data:") and (data := line.removeprefix("data:").strip()) != "[DONE]":
                self._check(json.loads(data), schema, f"an event of {method} {template}")
                count += 1
        return count

    def _resolved(self, response: Any) -> Any:
        if response is None or "$ref" not in response:
            return response
        return self.whole["components"]["responses"][response["$ref"].rpartition("/")[2]]

    def _check(self, body: Any, schema: Any, where: str) -> None:
        validator = Draft202012Validator(schema | self._components)
        errors = sorted(validator.iter_errors(body), key=lambda error: len(error.path))
        assert not errors, f"{where}: " + "; ".join(_told(error) for error in errors[:3])


def _strict(schema: Any) -> Any:
    """The schema, with no member allowed that it does not name."""
    if isinstance(schema, list):
        return [_strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _strict(one) for key, one in schema.items()}
    if isinstance(made.get("properties"), dict) and "type" in made and "additionalProperties" not in made:
        made["additionalProperties"] = False
    return made


def _told(error: Any) -> str:
    place = "/".join(map(str, error.absolute_path))
    if not error.context:
        return f"{place}: {error.message[:300]}"
    deepest = max(error.context, key=lambda one: (len(one.absolute_path), -len(one.message)))
    return f"{place}: none of its kinds; nearest: {_told(deepest)}"
