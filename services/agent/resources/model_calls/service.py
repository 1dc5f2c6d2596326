"""Model calls beside turns: what one would be sent, what fills its window, and one that nobody remembers."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from services.agent.calls.model_calls import ModelCalls, StepMeasures, sendable_history
from services.agent.calls.turn_context import turn_context
from services.agent.core.calls.offers import without_form
from services.agent.core.calls.positions import Positions
from services.agent.core.calls.replies import sanitize_reply
from services.agent.core.facts import Options, Usage
from services.agent.core.messages import Message, Text
from services.agent.core.ports import Memory, ModelRequest, Models, PeerLost, Reply, ToolInfo, Tools
from services.agent.core.ports_journal import OwnedRun, TokenCounts
from services.agent.core.prompt.system_prompt import MARKER, core_memory, outside_memory
from services.agent.core.summaries.summary import summary_of
from services.agent.core.turn import step_id
from services.agent.core.window.budget import calibrate
from services.agent.core.window.context import fit
from services.agent.core.window.sizes import estimate, estimate_text
from services.agent.resources.model_calls.ports import Peeks, Renderer
from services.common.errors import Unavailable
from services.common.ids import uuid7


@dataclass(frozen=True, slots=True)
class Sized:
    """A part of a window and its tokens."""

    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class WindowView:
    """The window of a conversation's next model call, `limit` tokens. `tools`, `messages`: with the
    tokens of all of them.
    """

    limit: int
    system: Sized
    core: Sized
    outside: Sized
    summary: Sized | None
    tools: Sequence[ToolInfo]
    tool_tokens: int
    messages: Sequence[Message]
    message_tokens: int
    passages: int
    stored: int


@dataclass(frozen=True, slots=True)
class Said:
    """A model's answer, which model gave it, and the tokens that it took."""

    text: str
    handle: str
    usage: Usage


class StandaloneModelCalls:
    """Shows and makes model calls outside of turns, in the context of the caller."""

    def __init__(self, peeks: Peeks, memory: Memory, tools: Tools, models: Models, renderer: Renderer) -> None:
        self._peeks = peeks
        self._memory = memory
        self._tools = tools
        self._models = models
        self._renderer = renderer

    async def window(self, organization_id: UUID, agent_id: UUID, conversation_id: UUID) -> WindowView:
        """Raises NotFound (AGENT_NOT_FOUND, CONVERSATION_NOT_FOUND), LociError."""
        owned = await self._peeks.peek(organization_id, agent_id, conversation_id)
        turn, settings = owned.turn, owned.turn.settings
        around = turn_context(owned, self._memory, self._tools)
        try:
            calls = ModelCalls(owned, self._models, around, Positions(owned.fence), StepMeasures(), stream=False)
            ready, view = await calls.ready(turn, step_id(owned.run_id, 1)), await around.view
        finally:
            around.discard()
        measure = _Measure(owned.counted)
        outside = outside_memory(ready.request.prompt)
        window = fit(sendable_history(turn), window=ready.window, fixed=ready.fixed)
        summaries = [message for message in turn.history if message.role == "summary"]
        return WindowView(
            limit=settings.context_window_limit,
            system=measure.components(settings.system.replace(MARKER, "").strip()),
            core=measure.components(core_memory(settings, view)),
            outside=measure.components(outside),
            summary=measure.components(summary_of(summaries[0])) if summaries else None,
            tools=ready.request.tools,
            tool_tokens=measure.tokens(ready.fixed - estimate_text(ready.request.prompt)),
            messages=[message for message in turn.history if message.role != "summary"],
            message_tokens=measure.tokens(sum(estimate(message) for message in window if message.role != "summary")),
            passages=view.passage_count,
            stored=owned.recalled,
        )

    async def preview(
        self,
        organization_id: UUID,
        agent_id: UUID,
        conversation_id: UUID,
        messages: tuple[Message, ...],
        options: Options,
        *,
        stream: bool,
    ) -> str:
        """Returns the body of the first model call of a turn, JSON text. Raises NotFound, LociError."""
        if options.model is not None:
            options = replace(options, context_window_limit=await self._models.window(options.model))
        owned = await self._peeks.peek(organization_id, agent_id, conversation_id, messages, options)
        return await self._renderer.render(await self._first(owned, stream=stream))

    async def _first(self, owned: OwnedRun, *, stream: bool) -> ModelRequest:
        around = turn_context(owned, self._memory, self._tools)
        try:
            calls = ModelCalls(owned, self._models, around, Positions(owned.fence), StepMeasures(), stream=stream)
            return await calls.first(owned.turn, step_id(owned.run_id, 1))
        finally:
            around.discard()

    async def generate(
        self,
        organization_id: UUID,
        agent_id: UUID,
        prompt: Message,
        system: str,
        options: Options,
        schema: Mapping[str, Any] | None,
    ) -> Said:
        """One call with the agent's settings, and nothing else of it. Raises NotFound (AGENT_NOT_FOUND), LociError."""
        owned = await self._peeks.peek(organization_id, agent_id, agent_id, (), options)
        settings = without_form(owned.turn.settings)
        if schema is not None:
            form = {"type": "json_schema", "json_schema": {"name": "reply", "schema": dict(schema)}}
            settings = replace(settings, response_format=form)
        request = ModelRequest(settings, system, (prompt,), (), agent_id, uuid7(), stream=False)
        try:
            async with aclosing(self._models.generate(request)) as parts:
                async for part in parts:
                    if isinstance(part, Reply):
                        reply = sanitize_reply(part)
                        text = "".join(each.text for each in reply.parts if isinstance(each, Text))
                        return Said(text, reply.handle or settings.model, reply.usage)
        except PeerLost:
            raise Unavailable("the model gateway cannot be reached; try again", reason="LLM_GATEWAY_LOST") from None
        raise AssertionError("a generation ended without a reply")


@dataclass(frozen=True, slots=True)
class _Measure:
    """Tokens as the provider would count them, as far as its last count tells."""

    counted: TokenCounts

    def components(self, text: str) -> Sized:
        """Returns a text with its tokens."""
        return Sized(text, self.tokens(estimate_text(text)) if text else 0)

    def tokens(self, estimated: int) -> int:
        """Returns an estimate in the provider's measure."""
        return calibrate(estimated, estimated=self.counted.reported, reported=self.counted.estimated)
