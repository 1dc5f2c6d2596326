"""Tools as ten kinds of MCP servers list them: arguments as a weak model sends them, and as the server gets them."""

from typing import Any

# name, inputSchema, the model's arguments, the server's
CASES: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    (
        "Python SDK (FastMCP): titles and Optional as anyOf",
        {
            "type": "object",
            "title": "addArguments",
            "properties": {
                "a": {"title": "A", "type": "integer"},
                "b": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "B"},
            },
            "required": ["a"],
        },
        {"a": "1", "b": "2"},
        {"a": 1, "b": 2},
    ),
    (
        "Python SDK: models by reference",
        {
            "type": "object",
            "$defs": {"Point": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
            "properties": {"points": {"type": "array", "items": {"$ref": "#/$defs/Point"}}},
        },
        {"points": '[{"x": "1.5"}]'},
        {"points": [{"x": 1.5}]},
    ),
    (
        "TypeScript SDK (zod): closed, with $schema",
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "additionalProperties": False,
            "properties": {"path": {"type": "string"}, "head": {"type": "number"}},
            "required": ["path"],
        },
        {"path": "/a", "head": "10"},
        {"path": "/a", "head": 10},
    ),
    (
        "Go SDK: nullable types as lists",
        {
            "type": "object",
            "properties": {
                "labels": {"type": ["array", "null"], "items": {"type": "string"}},
                "n": {"type": "integer"},
            },
        },
        {"labels": '["bug"]', "n": 3.0},
        {"labels": ["bug"], "n": 3},
    ),
    (
        "Java and C#: enumerations and formats",
        {
            "type": "object",
            "properties": {
                "level": {"type": "string", "enum": ["LOW", "HIGH"]},
                "since": {"type": "string", "format": "date-time"},
            },
            "required": ["level"],
        },
        {"level": "LOW", "since": "2026-01-31T00:00:00Z"},
        {"level": "LOW", "since": "2026-01-31T00:00:00Z"},
    ),
    (
        "Rust (schemars): integers with a format and bounds",
        {"type": "object", "properties": {"count": {"type": "integer", "format": "uint32", "minimum": 0}}},
        {"count": "7"},
        {"count": 7},
    ),
    ("a tool without arguments", {"type": "object"}, {}, {}),
    (
        "OpenAPI in front: oneOf of kinds",
        {
            "type": "object",
            "properties": {
                "id": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
                "flag": {"oneOf": [{"type": "boolean"}]},
            },
        },
        {"id": "42", "flag": "true"},
        {"id": "42", "flag": True},
    ),
    (
        "databases: objects with any names",
        {
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "params": {"type": "object", "additionalProperties": {"type": "number"}},
            },
        },
        {"query": "select 1", "params": '{"a": "1"}'},
        {"query": "select 1", "params": {"a": 1}},
    ),
    (
        "browsers: nested objects and lists of them",
        {
            "type": "object",
            "properties": {
                "steps": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"wait": {"type": "integer"}, "selector": {"type": "string"}},
                    },
                }
            },
        },
        {"steps": [{"wait": "5", "selector": 3}, '{"wait": 1}']},
        {"steps": [{"wait": 5, "selector": "3"}, {"wait": 1}]},
    ),
]
