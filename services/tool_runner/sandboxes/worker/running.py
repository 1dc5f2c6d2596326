"""Runs Python in the tool's process: a function with arguments (CALL), or a program (SCRIPT)."""

import importlib
import sys
import types
from typing import Any

from .annotated import as_annotated
from .loading import load
from .objects import as_object
from .outcome import TOOL_FILE, Outcome, raised_outcome
from .results import encode
from .state import Client, State

# Never the model's: the agent, and what is left from a method.
_HIDDEN = ("agent_state", "self")
_VAR_KEYWORDS = 0x08  # inspect.CO_VARKEYWORDS


def run(job: dict[str, Any]) -> Outcome:
    """Loads the source, runs it, and says how it ended; never raises."""
    script = job["mode"] == "script"
    try:
        state = State(job["agent_state"])
        value = _script(job) if script else _call(job, state)
        outcome = encode(value, job["limits"]["result"], or_text=script)
        return outcome | {"edits": state.edits()} if outcome["reason"] == "ok" else outcome
    # Whatever a tool raises, SystemExit included, is its outcome.
    except BaseException as error:  # noqa: BLE001
        return raised_outcome(error, job["source"])


def _call(job: dict[str, Any], state: State) -> Any:
    module = _module("tool", job)
    load(job["source"], TOOL_FILE, module)
    function = _function(module, job["function"])
    names, needed = _parameters(function)
    # An argument that may be left out and has no default is None (Optional[T]).
    missing = dict.fromkeys(needed)
    injected = {"agent_state": state.value} if "agent_state" in names and state.value is not None else {}
    arguments = _by_name(job, names, needed, function)
    converted = as_annotated(function, arguments, job["schema"])
    return _await_result(function(**(missing | converted | injected)))


def _by_name(job: dict[str, Any], names: list[str], needed: list[str], function: Any) -> dict[str, Any]:
    """Returns the arguments by the names of parameters: the only one, if no argument has its name, takes them all."""
    arguments: dict[str, Any] = job["arguments"]
    own = [name for name in names if name not in _HIDDEN]
    known = {*job["schema"].get("properties", ()), *arguments}
    if not job["schema"] or len(own) != 1 or own[0] not in needed or own[0] in known or _takes_any(function):
        return arguments
    return {own[0]: as_object(arguments, job["schema"])}


def _takes_any(function: Any) -> bool:
    """Returns whether it has `**words`."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return bool(getattr(getattr(function, "__code__", None), "co_flags", 0) & _VAR_KEYWORDS)


def _function(module: types.ModuleType, name: str) -> Any:
    """Returns the function of this name; the last that the source defines, for a tool that was named otherwise."""
    if callable(named := getattr(module, name, None)):
        return named
    functions = (value for value in vars(module).values() if isinstance(value, types.FunctionType))
    own = [function for function in functions if function.__code__.co_filename == TOOL_FILE]
    if not own:
        raise AttributeError(f"the source defines no function {name!r}")
    return own[-1]


def _parameters(function: Any) -> tuple[list[str], list[str]]:
    """Names of all that it takes, and of those without a default."""
    if isinstance(function, types.FunctionType) and not hasattr(function, "__wrapped__"):
        code = function.__code__
        plain, named = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames[:named])
        without = names[: plain - len(function.__defaults__ or ())]
        return names, without + [name for name in names[plain:] if name not in (function.__kwdefaults__ or {})]
    # Classes, decorated functions and other callables are rare, and this takes long to load.
    inspect = importlib.import_module("inspect")
    found = inspect.signature(function).parameters.values()
    kept = [one for one in found if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    return [one.name for one in kept], [one.name for one in kept if one.default is one.empty]


def _script(job: dict[str, Any]) -> Any:
    """Runs it as a program; the value of its last expression, None without one."""
    ast = importlib.import_module("ast")
    module = _module("__main__", job)
    tree = ast.parse(job["source"], TOOL_FILE)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    try:
        exec(compile(tree, TOOL_FILE, "exec"), module.__dict__)
        if last is None:
            return None
        return _await_result(eval(compile(ast.Expression(last.value), TOOL_FILE, "eval"), module.__dict__))
    except SystemExit as end:
        if end.code in (None, 0):
            return None
        raise


def _module(name: str, job: dict[str, Any]) -> types.ModuleType:
    module = types.ModuleType(name)
    if job["client"]:
        module.__dict__["client"] = Client()
    sys.modules[name] = module
    return module


def _await_result(value: Any) -> Any:
    if hasattr(type(value), "__anext__"):
        value = _items(value)
    if not hasattr(type(value), "__await__"):
        return value
    # asyncio is imported by who needs it: it would double the start of every worker.
    return importlib.import_module("asyncio").run(_wait_for(value))


async def _wait_for(value: Any) -> Any:
    value = await value
    return await _items(value) if hasattr(type(value), "__anext__") else value


async def _items(generator: Any) -> list[Any]:
    return [item async for item in generator]
