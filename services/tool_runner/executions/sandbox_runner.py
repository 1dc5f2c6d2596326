"""Runs a tenant's own source: a job for the sandbox, with packages, a way out and secrets that stay outside."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from services.common.core.refusals import Refused
from services.common.errors import FailedPrecondition
from services.tool_runner.core.job import Job, Language, Layer, Mode, Output, Result, SandboxUnavailable
from services.tool_runner.core.model import Tool
from services.tool_runner.core.ports import Ends, Layers, Place, Sandboxes, Work
from services.tool_runner.core.schemas import raw_arguments
from services.tool_runner.egress.egress import Egress
from services.tool_runner.egress.protocol import placeholders

# What a tool finds as its key for Loci; the proxy puts the call's own token in its place.
_API_KEY = "loci-run"
_LANGUAGES: Mapping[str, Language] = {"typescript": Language.NODE, "javascript": Language.NODE}


class NoLayers:
    """`ports.Layers` of a runner that installs nothing."""

    async def of(self, requirements: tuple[str, ...], language: Language) -> Layer:
        """Raises SandboxUnavailable."""
        raise SandboxUnavailable("packages cannot be installed here")

    async def of_tool(self, tool: Tool) -> Layer | None:
        """Returns None. Raises SandboxUnavailable for a tool with requirements."""
        if tool.pip_requirements or tool.npm_requirements:
            raise SandboxUnavailable("packages cannot be installed here")
        return None


class SandboxRunner:
    """`ports.Runner` of types whose tools are source. `sessions`: whether calls of a run may share a worker."""

    def __init__(self, sandboxes: Sandboxes, egress: Egress, layers: Layers, *, sessions: bool = False) -> None:
        self._sandboxes = sandboxes
        self._egress = egress
        self._layers = layers
        self._sessions = sessions

    async def place(self, tool: Tool) -> Place:
        """See `ports.Runner`. What takes long, installing packages, is done here: nothing has begun then."""
        try:
            self._egress.policy_of(tool.network)
        except Refused as refused:
            raise FailedPrecondition(refused.message, reason="NETWORK_INVALID") from None
        await self._layers.of_tool(tool)
        sandbox = await self._sandboxes.get()
        return Place(sandbox.name, sandbox.image)

    async def run(self, work: Work, on_output: Callable[[Output], None]) -> Result:
        """See `ports.Runner`."""
        sandbox = await self._sandboxes.get()
        policy = self._egress.policy_of(work.tool.network)
        environment, held = placeholders.split(work.environment, policy)
        token = work.call.client_token
        # Also for a tool that may reach nothing: it is told so, and how to allow it.
        tunnel = self._egress.tunnel(policy, held, token)
        layer = await self._layers.of_tool(work.tool)
        job = replace(self._job(work), environment=_with_client(environment, token), layer=layer)
        try:
            return await sandbox.run(job, Ends(on_output, tunnel))
        except SandboxUnavailable:
            self._sandboxes.forget(sandbox)
            raise

    def _job(self, work: Work) -> Job:
        tool, call = work.tool, work.call
        is_call = work.mode is Mode.CALL
        parameters = (json.loads(tool.json_schema).get("parameters") or {}) if is_call else {}
        tenant = str(work.organization_id)
        return Job(
            tool.source_code,
            tool.name,
            work.arguments,
            limits=work.limits,
            language=_LANGUAGES.get(tool.source_type, Language.PYTHON),
            mode=work.mode,
            inputs=work.inputs,
            agent_state=call.agent_state if is_call and tool.takes_agent_state else "",
            client=bool(call.client_token),
            session=f"{tenant}:{call.run_id}" if self._sessions and call.run_id else "",
            tenant=tenant,
            parameters=tuple(raw_arguments.names_of(parameters)),
            schema=parameters if tool.args_json_schema else {},
        )


def _with_client(environment: dict[str, str], token: str) -> dict[str, str]:
    """Returns the variables by which Letta's clients find Loci; what people set themselves holds."""
    return {"LETTA_API_KEY": _API_KEY, "LETTA_BASE_URL": "http://loci", **environment} if token else environment
