"""Prompt formatters, as settings name them: a built-in format, or a model's own Jinja template.

A template is given as text, as the text of a tokenizer_config.json (which also says the beginning and end tokens), or,
by the operator alone, as the path of a file with either. It is rendered in a limited child (template_child.py).
"""

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import orjson

from services.common.processes import Child
from services.llm_gateway.core.chat import ChatRequest
from services.llm_gateway.core.errors import LlmBadRequest, LlmServerError, ProviderInvalid
from services.llm_gateway.vendors.text.rendering import (
    FORMATS,
    Format,
    Prompt,
    messages_of,
    offered_tools,
    opening_of,
    render_prompt,
    split_beginning,
    tools_of,
    turns_as_messages,
    with_opening,
)
from services.llm_gateway.vendors.text.template_child import LONGEST_PROMPT, READY
from services.llm_gateway.vendors.text.tool_text import OPEN

LONGEST_TEMPLATE = 256 * 1024
_SECONDS = 3.0
# Of a new Python on a machine that has much else to do, at a low priority.
_START_SECONDS = 30.0
_COMMAND = (
    *(sys.executable, "-I", "-B", "-c"),
    f"import sys; sys.path[:] = {sys.path!r}\n"
    "from services.llm_gateway.vendors.text.template_child import main; main()",
)


class Formatter(Protocol):
    """The maker of prompts."""

    async def prompt(self, request: ChatRequest) -> Prompt:
        """Raises LlmBadRequest, LlmServerError."""
        ...

    async def close(self) -> None:
        """Ends the processes that it started."""
        ...


class BuiltInFormatter:
    """One of the built-in formats."""

    def __init__(self, form: Format) -> None:
        self._form = form

    async def prompt(self, request: ChatRequest) -> Prompt:
        """See Formatter.prompt."""
        return render_prompt(self._form, request)

    async def close(self) -> None:
        """Nothing was started."""


@dataclass(frozen=True, slots=True)
class Template:
    """A template's text, and the tokens it may name."""

    source: str
    begin: str = ""
    end: str = ""


class TemplateFormatter:
    """A model's own template. `reads_calls`: whoever reads the replies knows the calls that the template teaches, even
    where they are not as tool_text.py reads them.
    """

    def __init__(self, template: Template, setting: str, *, reads_calls: bool = False) -> None:
        self._template = template
        self._setting = setting
        self._child = TemplateChild()
        # Else tools are described in our own words.
        self._knows_tools = "tools" in template.source and (reads_calls or OPEN in template.source)

    async def prompt(self, request: ChatRequest) -> Prompt:
        """See Formatter.prompt."""
        tools = offered_tools(request) if self._knows_tools else ()
        context = {
            "messages": messages_of(request) if self._knows_tools else turns_as_messages(request),
            "tools": tools_of(tools) or None,
            "add_generation_prompt": True,
            "bos_token": self._template.begin,
            "eos_token": self._template.end,
        }
        try:
            text = await self._child.render(self._template.source, context)
        except TemplateFailure as error:
            message = f"The prompt template of {self._setting} cannot be rendered for {request.handle}: {error}."
            raise LlmBadRequest(message, handle=request.handle) from error
        except TemplateChildLate as error:
            raise LlmServerError(
                f"The prompt for {request.handle} was not made: {error}.", handle=request.handle
            ) from error
        prompt = split_beginning(text, self._template.begin)
        hermes = not self._knows_tools or OPEN in self._template.source
        return with_opening(prompt, opening_of(request)) if hermes else prompt

    async def close(self) -> None:
        """See Formatter.close."""
        await self._child.close()


def formatter_of(value: str, setting: str, *, may_read: bool, reads_calls: bool = False) -> Formatter:
    """Returns the formatter that `setting` names with `value`; `may_read`: a path of a file is one, too. Raises
    ProviderInvalid.
    """
    if value in FORMATS:
        return BuiltInFormatter(FORMATS[value])
    text = value
    if may_read and not _is_template(text) and not text.lstrip().startswith("{"):
        try:
            text = Path(value).read_text()
        except (OSError, ValueError) as error:
            raise _invalid(setting, f"is {value!r}, which cannot be read ({error})") from error
    return TemplateFormatter(_template_of(text, setting), setting, reads_calls=reads_calls)


def _template_of(text: str, setting: str) -> Template:
    if len(text) > LONGEST_TEMPLATE:
        raise _invalid(setting, f"has more than {LONGEST_TEMPLATE:,} characters")
    try:
        config: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        config = None
    if isinstance(config, Mapping) and isinstance(config.get("chat_template"), str):
        return Template(config["chat_template"], _token(config.get("bos_token")), _token(config.get("eos_token")))
    if not _is_template(text):
        raise _invalid(setting, "is no template")
    if "eos_token" in text:
        raise _invalid(
            setting, "names eos_token without saying it: write the token there, or give tokenizer_config.json"
        )
    return Template(text)


def _token(value: Any) -> str:
    """A token of tokenizer_config.json, a text or an object."""
    return str(value.get("content") or "") if isinstance(value, Mapping) else str(value or "")


def _is_template(text: str) -> bool:
    return "{{" in text or "{%" in text


def _invalid(setting: str, problem: str) -> ProviderInvalid:
    names = ", ".join(sorted(FORMATS))
    return ProviderInvalid(f"{setting} {problem}; expected one of {names}, or a Jinja template of a model's chats.")


class TemplateFailure(Exception):
    """The template cannot be rendered; the message is why."""


class TemplateChildLate(Exception):
    """The process that renders templates did not start in time; the message says so."""


class TemplateChild:
    """The child, started when first needed, and again after its end. `seconds`: the longest that a prompt may take,
    once the process is there; `start_seconds`: the longest until it is.
    """

    def __init__(self, *, seconds: float = _SECONDS, start_seconds: float = _START_SECONDS) -> None:
        self._seconds = seconds
        self._start_seconds = start_seconds
        self._child: Child | None = None
        self._turn = asyncio.Lock()

    async def render(self, template: str, context: Mapping[str, Any]) -> str:
        """Returns the prompt. Raises TemplateFailure, TemplateChildLate."""
        line = orjson.dumps({"template": template, "context": context}, option=orjson.OPT_APPEND_NEWLINE)
        async with self._turn:
            # An idle child may have gone just now.
            answer = await self._ask(line) or await self._ask(line)
        if not answer:
            raise TemplateFailure("it fails, or needs too much memory")
        reply = orjson.loads(answer)
        if "error" in reply:
            raise TemplateFailure(reply["error"])
        return str(reply["prompt"])

    async def _ask(self, line: bytes) -> bytes:
        """Returns the answer, b"" where the child ended."""
        answered = False
        try:
            child = await self._started()
            async with asyncio.timeout(self._seconds):
                await child.send(line)
                answer = await child.reader.readline()
                answered = answer.endswith(b"\n")
                return answer if answered else b""
        except TimeoutError:
            raise TemplateFailure(f"it takes longer than {self._seconds:g} s") from None
        except ConnectionError:
            return b""
        finally:
            if not answered:
                await self._end()

    async def _started(self) -> Child:
        """Returns the child once it can render. Raises TemplateChildLate, ConnectionError."""
        if self._child is None:
            self._child = await Child.start(
                *_COMMAND, environment={}, errors=subprocess.DEVNULL, longest_line=8 * LONGEST_PROMPT
            )
            try:
                async with asyncio.timeout(self._start_seconds):
                    if await self._child.reader.readline() != READY:
                        raise ConnectionResetError("it ended as it started")
            except TimeoutError:
                late = f"the process that renders it did not start within {self._start_seconds:g} s"
                raise TemplateChildLate(late) from None
        return self._child

    async def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await child.end()

    async def close(self) -> None:
        """Ends the child."""
        await self._end()
