"""A call made ready: who runs it, its arguments, its environment, its files. Nothing is written."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from services.common.errors import FailedPrecondition
from services.tool_runner.child_processes.source_parser import SourceParser
from services.tool_runner.core.job import Limits
from services.tool_runner.core.masking import Mask
from services.tool_runner.core.model import Call, Tool, ToolType
from services.tool_runner.core.ports import CallEnvironment, Environments, Runner, Work
from services.tool_runner.executions.arguments import Refusal, check_arguments
from services.tool_runner.executions.files.inputs import Inputs
from services.tool_runner.tools.ports import ToolStore

# Of values to be masked: making ready for more takes so long that a thread does it.
_MANY_CHARACTERS = 4_096
_BY_AGENT_SERVICE = frozenset({"conversation_search", "send_message"})


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call that may begin, unless it has problems: sentences for the model. `file_names`: below /inputs, by id."""

    work: Work
    runner: Runner
    mask: Mask
    file_names: Mapping[UUID, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    fingerprint: str = ""


class CallPreparation:
    """Makes calls ready. `limits.seconds` is also the longest that a caller may ask for."""

    def __init__(
        self,
        tools: ToolStore,
        environments: Environments,
        inputs: Inputs,
        limited: SourceParser,
        limits: Limits,
        runners: Mapping[ToolType, Runner],
    ) -> None:
        self._tools = tools
        self._environments = environments
        self._inputs = inputs
        self._limited = limited
        self._limits = limits
        self._runners = runners

    async def prepare(self, organization_id: UUID, call: Call, tool: Tool | None = None) -> PreparedCall | None:
        """Prepares a call. `tool`: for one that is not in the catalogue. None where it is gone.

        Raises FailedPrecondition (TOOL_NOT_RUNNABLE), and what the environments raise.
        """
        stored = tool or await self._tools.find(organization_id, call.tool_id)
        if stored is None:
            return None
        runner = self._runners.get(stored.tool_type)
        if runner is None:
            raise _not_runnable(stored)
        settings = await self._environments.of_call(organization_id, call.tool_id, call.agent_id)
        secrets = {**settings.variables, **call.environment}
        prepared = PreparedCall(
            work=Work(
                organization_id=organization_id,
                tool=_with_requirements(stored, settings),
                call=call,
                arguments={},
                environment={**_known(call, stored), **secrets},
                limits=replace(self._limits, seconds=min(call.seconds or self._limits.seconds, self._limits.seconds)),
            ),
            runner=runner,
            mask=await _mask([*secrets.values(), call.client_token]),
            fingerprint=settings.fingerprint,
        )
        return await self._with_arguments(prepared)

    async def load_files(self, prepared: PreparedCall) -> PreparedCall:
        """Returns it with the contents of its files, or with a problem."""
        work = prepared.work
        files = await self._inputs.read(work.organization_id, prepared.file_names)
        if files is None:
            return replace(prepared, problems=("a file that it was to be given has been erased",))
        return replace(prepared, work=replace(work, inputs=files)) if files else prepared

    async def _with_arguments(self, prepared: PreparedCall) -> PreparedCall:
        work = prepared.work
        try:
            arguments = await check_arguments(work.tool, work.call, self._limited)
        except Refusal as refusal:
            return replace(prepared, problems=tuple(refusal.problems))
        parameters = json.loads(work.tool.json_schema).get("parameters") or {}
        files = await self._inputs.find(work.organization_id, work.call.file_ids, parameters, arguments)
        ready = replace(work, arguments=files.arguments)
        return replace(prepared, work=ready, file_names=files.names, problems=files.problems)


async def _mask(values: Sequence[str]) -> Mask:
    if sum(map(len, values)) <= _MANY_CHARACTERS:
        return Mask(values)
    return await asyncio.to_thread(Mask.whole, values)


def _known(call: Call, tool: Tool) -> dict[str, str]:
    """Returns what every tool is told; nothing of it is secret."""
    known = {"LETTA_TOOL_ID": f"tool-{tool.id}"}
    if call.agent_id:
        known["LETTA_AGENT_ID"] = f"agent-{call.agent_id}"
    if tool.project_id:
        known["LETTA_PROJECT_ID"] = tool.project_id
    return known


def _with_requirements(tool: Tool, settings: CallEnvironment) -> Tool:
    """Returns the tool with the packages that every call of the tenant has; its own versions hold."""
    pip = _with_packages(settings.pip_requirements, tool.pip_requirements)
    npm = _with_packages(settings.npm_requirements, tool.npm_requirements)
    if (pip, npm) == (tool.pip_requirements, tool.npm_requirements):
        return tool
    return replace(tool, pip_requirements=pip, npm_requirements=npm)


def _with_packages(common: str, own: str) -> str:
    if not common or not own:
        return common or own
    entries: list[dict[str, Any]] = [*json.loads(common), *json.loads(own)]
    return json.dumps(list({entry["name"]: entry for entry in entries}.values()))


def _not_runnable(tool: Tool) -> FailedPrecondition:
    by_agent = tool.name in _BY_AGENT_SERVICE or tool.tool_type is ToolType.LETTA_MULTI_AGENT_CORE
    where = "the agent service" if by_agent else "the memory service"
    return FailedPrecondition(
        f"{tool.name} ({tool.tool_type}) is not run in a sandbox; {where} runs it", reason="TOOL_NOT_RUNNABLE"
    )
