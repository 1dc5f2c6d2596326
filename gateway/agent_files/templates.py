"""The agent file of a template, filled in for the agents that are made of it. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from gateway.agent_files.checks import MOST_MESSAGES, invalid_file
from gateway.agent_files.schema import AgentFile, FileAgent, FileMessage

_VARIABLE = re.compile(r"\{\{\s*([A-Za-z0-9_.-]{1,128})\s*\}\}")
# That variables put into texts: each may stand there thousands of times.
MOST_INSERTED = 4_000_000


@dataclass(frozen=True, kw_only=True)
class TemplateValues:
    """Values that agents get beside those of their template; `variables` are of its texts. See `drafts.Options`."""

    name: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    messages: Sequence[Mapping[str, Any]] = ()
    tags: tuple[str, ...] = ()
    identity_ids: tuple[str, ...] = ()
    model: str | None = None
    embedding: str | None = None
    project_id: str | None = None


def fill_template(file: AgentFile, filling: TemplateValues) -> AgentFile:
    """Returns the file with `{{variable}}` in blocks and instructions replaced. The first agent gets the name and
    begins with the messages; all get the secrets. A variable that is not given stays as it is. Raises InvalidArgument
    (AGENT_FILE_INVALID) where variables make more than MOST_INSERTED characters.
    """
    variables = filling.variables
    texts = (block.value for block in file.blocks), (agent.system or "" for agent in file.agents)
    if sum(_inserted(text, variables) for text in chain(*texts)) > MOST_INSERTED:
        raise invalid_file(f"memory_variables put more than {MOST_INSERTED} characters into the texts of the template.")
    for block in file.blocks:
        block.value = _filled(block.value, variables)
    for agent in file.agents:
        agent.system = None if agent.system is None else _filled(agent.system, variables)
        agent.secrets = dict.fromkeys((*agent.secret_names, *filling.secrets), "")
        agent.messages, agent.in_context_message_ids = None, None
    first = file.agents[0]
    first.name = filling.name or first.name
    _begin(first, filling.messages)
    return file


def _begin(agent: FileAgent, messages: Sequence[Mapping[str, Any]]) -> None:
    created = [
        FileMessage(
            # Behind all that a file can have.
            id=f"message-{MOST_MESSAGES + place}",
            role=message["role"],
            content=message["content"],
            name=message.get("name"),
            otid=message.get("otid"),
            sender_id=message.get("sender_id"),
        )
        for place, message in enumerate(messages)
    ]
    # The first of a window is the compiled prompt: one of the client's own must not be taken for it.
    prompt = FileMessage(id=f"message-{MOST_MESSAGES + len(created)}", role="system", content="")
    agent.messages = [prompt, *created] if created else None
    agent.in_context_message_ids = [message.id for message in agent.messages or ()] or None


def _inserted(text: str, variables: Mapping[str, str]) -> int:
    return sum(len(variables.get(match[1], "")) for match in _VARIABLE.finditer(text))


def _filled(text: str, variables: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda match: variables.get(match[1], match[0]), text)
