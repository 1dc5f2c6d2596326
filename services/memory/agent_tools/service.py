"""The memory tools: each call is applied once under its key, and what the model did wrong is told to it.

The edit, its row of history and the result are one commit. A call that is repeated (its answer was lost, or
it was killed half-way) finds the result and does nothing.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from uuid import UUID

from services.common.core.refusals import Refused
from services.common.core.storable import storable_name
from services.common.errors import Aborted, AlreadyExists, InvalidArgument, LociError, NotFound, ResourceExhausted
from services.common.ids import from_public, uuid7
from services.memory.agent_tools.edit_queues import EditQueues
from services.memory.agent_tools.fences import owner, run_fenced
from services.memory.agent_tools.file_tools import FILE_TOOLS, FileTools
from services.memory.agent_tools.model import CallRecord, EditLookup, ToolCall, ToolResult, ValueEdit
from services.memory.agent_tools.records import check_same_call, fingerprint, record_of, render_result, zone_of
from services.memory.agents.model import AgentMemory
from services.memory.blocks.conflicts import EditRetries, retry_on_conflict
from services.memory.blocks.model import Block, BlockDraft, validate
from services.memory.core.editing import edits, patches
from services.memory.core.editing.patches import Plan
from services.memory.core.errors import DuplicateCall, VersionConflict
from services.memory.core.ports.agents import AgentStore, CallStore, CopyStore
from services.memory.core.tools import memory_tool
from services.memory.core.tools.arguments import Arguments
from services.memory.core.tools.value_edits import EDITS, Operation, label_of
from services.memory.passages.model import OfAgent, PassageDraft, PassageFilter, PassageQuery, id_of_call
from services.memory.passages.service import PassageService
from services.memory.search.service import PassageSearch

_REWRITE, _PATCH, _MEMORY = "memory_rethink", "memory_apply_patch", "memory"
_INSERT, _SEARCH = "archival_memory_insert", "archival_memory_search"
# What only says that a series of edits is over; the agent's rules end its turn.
_ENDS = {
    "memory_finish_edits": "Your memory edits are complete.",
    "finish_rethinking_memory": "Your rethinking of memory is complete.",
}
TOOL_NAMES = (*EDITS, _MEMORY, *_ENDS, _INSERT, _SEARCH, *FILE_TOOLS)
_SUMMARY_DESCRIPTION = "Summary of earlier messages"


class ToolService:
    """Runs tool calls."""

    def __init__(
        self,
        queues: EditQueues,
        agents: AgentStore,
        copies: CopyStore,
        calls: CallStore,
        passages: PassageService,
        search: PassageSearch,
        retries: EditRetries,
        files: FileTools,
    ) -> None:
        self._edit_queues = queues
        self._agents = agents
        self._copies = copies
        self._calls = calls
        self._passages = passages
        self._passage_search = search
        self._retries = retries
        self._files = files

    async def apply(self, call: ToolCall) -> ToolResult:
        """Applies the call, or returns the result of the time it was applied.

        Raises NotFound (TOOL_NOT_FOUND), FailedPrecondition (CALL_KEY_REUSED, RUN_FENCED).
        """
        make = EDITS.get(call.tool_name)
        try:
            arguments = Arguments.parse(call.arguments_json)
            if _may_create(call):
                text = arguments.text("new_memory")
                return await self._edit(
                    call, storable_name(arguments.text("label")), partial(edits.rewrite, text=text, trusted=True)
                )
            if call.tool_name == _PATCH and (parts := patches.parts(arguments.text("patch"))):
                return await self._carry_out(call, lambda memory: patches.plan(parts, memory, uuid7))
            if call.tool_name == _MEMORY:
                return await self._run_memory_tool(call, memory_tool.command(arguments, uuid7))
            if make is not None:
                return await self._edit(call, label_of(call.tool_name, arguments), make(arguments))
            if call.tool_name in _ENDS:
                return await self._answer(call, _ENDS[call.tool_name], is_error=False)
            if call.tool_name == _INSERT:
                return await self._insert(call, arguments)
            if call.tool_name == _SEARCH:
                return await self._search(call, arguments)
            if call.tool_name in FILE_TOOLS:
                return await self._with_files(call, arguments)
        except Refused as refused:
            return await self._answer(call, refused.message, is_error=True)
        except DuplicateCall:
            return await self._answer(call, "This call was made before.", is_error=True)
        raise NotFound(f"the memory service has no tool {call.tool_name!r}", reason="TOOL_NOT_FOUND")

    async def fence(self, organization_id: UUID, run_id: UUID, fence: int) -> None:
        """Refuses what the run's owners before this fence ask for, from now on."""
        await self._calls.fence(organization_id, run_id, fence)

    async def _run_memory_tool(
        self, call: ToolCall, command: memory_tool.EditCommand | memory_tool.PlanCommand
    ) -> ToolResult:
        match command:
            case memory_tool.EditCommand(label, operation):
                return await self._edit(call, label, operation)
            case memory_tool.PlanCommand(plan_of):
                return await self._carry_out(call, plan_of)

    async def _edit(self, call: ToolCall, label: str, operation: Operation) -> ToolResult:
        async def once() -> ToolResult:
            look = EditLookup(call.agent_id, call.call_key, label, call.conversation_id, owner())
            view = await self._edit_queues.look(call.organization_id, look)
            if view.record is not None:
                return await self._repeat(call, view.record)
            if view.fenced:
                raise run_fenced()
            if view.block is None:
                if _may_create(call):
                    return await self._create(call, label, operation)
                raise edits.unknown_label(label, view.labels)
            edit, stored = await self._edit_queues.edit(call.organization_id, call.call_key, view.block, make)
            if stored is None:
                return await self._answer(call, edit.record.tool_return, is_error=False)
            return ToolResult(tool_return=edit.record.tool_return, is_error=False, changed_blocks=(stored,))

        def make(block: Block) -> ValueEdit:
            after, edit = edits.apply_edit(block, operation)
            record = record_of(call, edits.report(after, edit), is_error=False)
            return ValueEdit(value=after.value, operation=edit.operation, origin=call.origin, record=record)

        return await retry_on_conflict(once)

    async def _carry_out(self, call: ToolCall, plan_of: Callable[[AgentMemory], Plan]) -> ToolResult:
        """Applies a plan for several blocks, or for which blocks there are: all of it or nothing."""

        async def once() -> ToolResult:
            earlier = await self._calls.find(call.organization_id, call.call_key)
            if earlier is not None:
                return await self._repeat(call, earlier)
            plan = plan_of(await self._agents.memory(call.organization_id, call.agent_id, call.conversation_id))
            record = record_of(call, "\n".join(plan.messages), is_error=False)
            record = replace(record, changed_block_ids=plan.changed_block_ids)
            try:
                await self._copies.apply_plan(call.organization_id, call.agent_id, plan, call.origin, record)
            except AlreadyExists as error:
                raise Refused("TOOL_REFUSED", f"Nothing was changed: {error.message}.") from None
            return await self._repeat(call, record)

        return await self._retries.run(once)

    async def _create(self, call: ToolCall, label: str, operation: Operation) -> ToolResult:
        """Returns the block that the platform writes to, when it writes for the first time."""
        block_id = uuid7()
        draft = validate(
            BlockDraft(id=block_id, label=label, value=operation("").value, description=_SUMMARY_DESCRIPTION)
        )
        answer = f'The memory block "{label}" was created ({len(draft.value)} of {draft.limit} characters).'
        record = replace(record_of(call, answer, is_error=False), changed_block_ids=(block_id,))
        try:
            await self._copies.create_and_attach(call.organization_id, call.agent_id, [draft], call.origin, record)
        except AlreadyExists:  # since the agent's labels were read
            raise VersionConflict(block_id) from None
        return await self._repeat(call, record)

    async def _insert(self, call: ToolCall, arguments: Arguments) -> ToolResult:
        earlier = await self._calls.find(call.organization_id, call.call_key)
        if earlier is not None:
            return await self._repeat(call, earlier)
        passage_id = id_of_call(call.organization_id, call.call_key)
        draft = PassageDraft(
            id=passage_id,
            text=arguments.text("content"),
            tags=arguments.texts("tags"),
            key=arguments.optional_text("key"),
            supersedes=tuple(map(_passage_id, arguments.texts("supersedes"))),
        )
        answer = f"Stored in archival memory as passage-{passage_id}."
        record = record_of(call, answer, is_error=False)
        try:
            await self._passages.insert(
                call.organization_id,
                call.user_id,
                OfAgent(call.agent_id),
                [draft],
                call.embedding,
                record,
                call.agent_name,
            )
        except Aborted:
            raise
        except LociError as error:
            if error.reason == "PASSAGE_NOT_FOUND":
                return await self._answer(call, f"Nothing was stored: {error.message}.", is_error=True)
            answer = (
                "Nothing was stored in archival memory, because the text could not be embedded: "
                f"{error.message.rstrip('.')}. It may work later."
            )
            return await self._answer(call, answer, is_error=True)
        return ToolResult(tool_return=answer, is_error=False)

    async def _search(self, call: ToolCall, arguments: Arguments) -> ToolResult:
        earlier = await self._calls.find(call.organization_id, call.call_key)
        if earlier is not None:
            return await self._repeat(call, earlier)
        zone = zone_of(call.timezone)
        query = PassageQuery(
            text=arguments.text("query"),
            top_k=arguments.integer("top_k", 5),
            filter=PassageFilter(
                tags=arguments.texts("tags"),
                match_all_tags=arguments.choice("tag_match_mode", ("any", "all"), "any") == "all",
                start=arguments.time("start_datetime", zone),
                end=arguments.time("end_datetime", zone, end=True),
                as_of=arguments.time("as_of", zone, end=True),
                history=arguments.flag("history"),
            ),
        )
        try:
            result = await self._passage_search.search(call.organization_id, OfAgent(call.agent_id), query)
        except ResourceExhausted as error:
            raise Refused("TOOL_REFUSED", f"There is too much to show: {error.message}.") from None
        return await self._answer(call, render_result(result, zone), is_error=False)

    async def _with_files(self, call: ToolCall, arguments: Arguments) -> ToolResult:
        result = await self._calls.find(call.organization_id, call.call_key)
        if result is None:
            result = await self._files.apply(call, arguments, partial(record_of, call, is_error=False))
        return await self._repeat(call, result)

    async def _answer(self, call: ToolCall, answer: str, *, is_error: bool) -> ToolResult:
        """Keeps a result that changes nothing, unless there is one already, which then is the answer."""
        record = record_of(call, answer, is_error=is_error)
        return await self._repeat(call, await self._calls.record(call.organization_id, record))

    async def _repeat(self, call: ToolCall, record: CallRecord) -> ToolResult:
        check_same_call(record, fingerprint(call))
        changed: list[Block] = []
        if record.changed_block_ids:
            changed = await self._calls.blocks(call.organization_id, record.changed_block_ids)
        return ToolResult(tool_return=record.tool_return, is_error=record.is_error, changed_blocks=tuple(changed))


def _passage_id(text: str) -> UUID:
    try:
        return from_public("passage", text)
    except InvalidArgument as error:
        raise Refused("TOOL_REFUSED", f'The argument "supersedes" must be ids of passages: {error.message}.') from None


def _may_create(call: ToolCall) -> bool:
    return call.create_missing_block and call.tool_name == _REWRITE
