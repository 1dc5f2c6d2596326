"""LangChain tools: the class is imported inside the tool's function, in its sandbox, from packages of its layer. Pure.

    {"module": "langchain_community.tools", "class": "WikipediaQueryRun",
     "arguments": {"api_wrapper": {"module": "langchain_community.utilities", "class": "WikipediaAPIWrapper"}},
     "name": "wikipedia", "description": "Look something up.", "args_schema": {JSON Schema of an object},
     "packages": ["wikipedia==1.4.0"]}

An argument that is an object with "module" and "class" is made the same way; {"environment": "NAME"} is that variable.
Without `args_schema` the tool takes one text.
"""

import re
from collections.abc import Iterator
from typing import Any

from services.tool_runner.core.model import JsonObject, ToolType
from services.tool_runner.tools.imports.definition import (
    ImportedTool,
    describe,
    function_name,
    literal,
    member,
    parameters_of,
    refusal,
)

_ONE_TEXT = "tool_input"
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_CLASS = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PACKAGE = re.compile(r"\s*([A-Za-z0-9][\w.\[\],-]*)\s*((?:[=<>!~]=?=?).+)?\s*", re.ASCII)
_DEEPEST = 10

_SOURCE = '''import asyncio
import importlib
import json
import os


def _built(value):
    """A value of the definition: objects with a class are made of it, the others are taken as they are."""
    if isinstance(value, list):
        return [_built(part) for part in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {{"environment"}}:
        return os.environ[value["environment"]]
    if {{"module", "class"}} <= value.keys():
        made = getattr(importlib.import_module(value["module"]), value["class"])
        return made(**{{name: _built(part) for name, part in (value.get("arguments") or {{}}).items()}})
    return {{name: _built(part) for name, part in value.items()}}


def _plain(value):
    """Returns the parts of an answer that JSON can hold."""
    if isinstance(value, dict):
        return {{str(name): _plain(part) for name, part in value.items()}}
    if isinstance(value, (list, tuple, set)):
        return [_plain(part) for part in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    dump = getattr(value, "model_dump", None) or getattr(value, "dict", None)
    return _plain(dump()) if callable(dump) else str(value)


def {name}(**arguments):
    tool = _built(json.loads({definition}))
    given = {given}
    try:
        answer = tool.invoke(given)
    except NotImplementedError:
        answer = asyncio.run(tool.ainvoke(given))
    return _plain(answer)
'''


def import_class(definition: JsonObject) -> ImportedTool:
    """Raises Refused (TOOL_SCHEMA_INVALID), naming the member."""
    example = _check(definition, "", 0)
    of_class = example["class"]
    name = function_name(member(definition, "name", str, "") or of_class)
    parameters = parameters_of(definition, "args_schema")
    return ImportedTool(
        tool_type=ToolType.EXTERNAL_LANGCHAIN,
        name=name,
        description=describe(definition, f"The LangChain tool {of_class}."),
        parameters=parameters or _one_text(),
        source_code=_SOURCE.format(
            name=name,
            definition=literal(example),
            given="arguments" if parameters is not None else f'arguments["{_ONE_TEXT}"]',
        ),
        packages=_packages(definition, example),
        tags=("langchain",),
    )


def _one_text() -> JsonObject:
    text = {"type": "string", "description": "What the tool is to work on."}
    return {"type": "object", "properties": {_ONE_TEXT: text}, "required": [_ONE_TEXT]}


def _check(value: JsonObject, where: str, depth: int) -> JsonObject:
    """Returns the class and its arguments, all the way down. Raises Refused."""
    module, of_class = value.get("module"), value.get("class")
    if not isinstance(module, str) or not _MODULE.fullmatch(module):
        raise refusal(f"{where}module", "must be the name of a Python module")
    if not isinstance(of_class, str) or not _CLASS.fullmatch(of_class):
        raise refusal(f"{where}class", "must be the name of a class")
    arguments = member(value, "arguments", dict, {})
    _check_nested(arguments, f"{where}arguments.", depth + 1)
    return {"module": module, "class": of_class, "arguments": arguments}


def _check_nested(value: Any, where: str, depth: int) -> None:
    if depth > _DEEPEST:
        raise refusal(where.rstrip("."), "is nested too deeply")
    if isinstance(value, dict) and "module" in value and "class" in value:
        _check(value, where, depth)
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            _check_nested(part, where, depth + 1)


def _packages(definition: JsonObject, example: JsonObject) -> tuple[JsonObject, ...]:
    """Returns those that LangChain's own modules come from, then those that are named; a name's last entry holds."""
    packages: dict[str, JsonObject] = {}
    for name in sorted({module.partition(".")[0].replace("_", "-") for module in _modules(example)}):
        if name.startswith("langchain"):
            packages[name] = {"name": name}
    for entry in member(definition, "packages", list, []):
        package = _package(entry)
        packages[package["name"]] = package
    return tuple(packages.values())


def _modules(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for part in value:
            yield from _modules(part)
    elif isinstance(value, dict):
        if isinstance(value.get("module"), str) and "class" in value:
            yield value["module"]
        yield from _modules(list(value.values()))


def _package(entry: Any) -> JsonObject:
    match entry:
        case {"name": str(name), **rest}:
            return {"name": name, **({"version": rest["version"]} if rest.get("version") else {})}
        case str(text) if found := _PACKAGE.fullmatch(text):
            name, version = found.groups()
            return {"name": name, **({"version": version.strip().removeprefix("==")} if version else {})}
    raise refusal("packages", 'must be a list of texts such as "wikipedia==1.4.0", or of {"name", "version"}')
