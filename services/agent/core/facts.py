"""The settings of a run, the facts of its log and the actions that lead to them. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

from services.agent.core.messages import Call, Decision, Message, Return, Text
from services.agent.core.rules.tool_rules import ToolRule
from services.agent.core.window.compaction import CompactionStats, Trigger
from services.common.core.file_limits import file_limits

# What this release reads, and what it writes: of a run's first fact, which names its system prompt, and of the others.
SCHEMA_VERSION = FIRST_FACT_VERSION = 3
FACT_VERSION = 2


class StopReason(StrEnum):
    """The reason why a run ends; values are those of the reference API."""

    END_TURN = "end_turn"
    ERROR = "error"
    LLM_API_ERROR = "llm_api_error"
    INVALID_LLM_RESPONSE = "invalid_llm_response"
    INVALID_TOOL_CALL = "invalid_tool_call"
    MAX_STEPS = "max_steps"
    MAX_TOKENS_EXCEEDED = "max_tokens_exceeded"
    NO_TOOL_CALL = "no_tool_call"
    TOOL_RULE = "tool_rule"
    CANCELLED = "cancelled"
    INSUFFICIENT_CREDITS = "insufficient_credits"
    REQUIRES_APPROVAL = "requires_approval"
    CONTEXT_WINDOW_OVERFLOW_IN_SYSTEM_PROMPT = "context_window_overflow_in_system_prompt"


class RunStatus(StrEnum):
    """The state of a run; values are those of the reference API."""

    CREATED = "created"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens; None where the provider does not say."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A tool that the client runs. `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClientSkill:
    """Something that the client's agent can look up; it is in this request's prompt only."""

    name: str
    description: str = ""
    location: str = ""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a request. Tokens and steps; None: as the agent has it."""

    max_steps: int = 50
    model: str | None = None
    context_window_limit: int | None = None
    system: str | None = None
    client_tools: tuple[ClientTool, ...] = ()
    client_skills: tuple[ClientSkill, ...] = ()
    # The request is for a compaction, with these settings over the agent's.
    compact: Mapping[str, Any] | None = None
    return_logprobs: bool = False
    top_logprobs: int | None = None
    return_token_ids: bool = False
    include_trace: bool = False
    callback_url: str | None = None
    # One connection to the provider for all calls of the run, where it offers that.
    websocket: bool = False
    # How whoever asked shows the run, in words of its own.
    view: str | None = None
    # The request wants its conversation for itself.
    locks: bool = False
    response_format: Mapping[str, Any] | None = None
    # The tool that the first model call must call, "" for any.
    first_call: str | None = None
    parallel_tool_calls: bool | None = None
    # Texts before which a reply ends.
    stop: tuple[str, ...] = ()
    # Added to the prompt of this request.
    instructions: str = ""
    # Agents that wrote to one another until this one was written to.
    hops: int = 0
    # It tends another agent's memory, so nobody tends what it says.
    tends: bool = False
    # The group whose round it is; see groups/plan.py.
    group: Mapping[str, Any] | None = None
    # For who speaks in a group: the tools that it has for this turn, and the UUIDs of the members by name.
    group_tools: tuple[ClientTool, ...] = ()
    group_members: Mapping[str, str] = field(default_factory=dict)


def is_silent(options: Options, messages: Sequence[object]) -> bool:
    """Returns whether a request says nothing to the agent: a compaction does not change what waits for the client."""
    return options.compact is not None and not messages


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that a run began with and keeps whatever happens to the agent meanwhile. The limit is in tokens."""

    agent_version: int
    model: str
    embedding: str
    system: str
    context_window_limit: int
    agent_type: str = "letta_v1_agent"
    tool_ids: tuple[UUID, ...] = ()
    tool_rules: tuple[ToolRule, ...] = ()
    timezone: str = "UTC"
    model_settings: Mapping[str, Any] = field(default_factory=dict)
    response_format: Mapping[str, Any] | None = None
    compaction_settings: Mapping[str, Any] | None = None
    message_buffer_autoclear: bool = False
    recall_passages: int = 0
    max_files_open: int | None = None
    per_file_view_window_char_limit: int | None = None
    agent_name: str = ""
    enable_sleeptime: bool = False
    options: Options = Options()

    @property
    def file_limits(self) -> tuple[int, int]:
        """Files that may be open at once, and characters in view of each."""
        return file_limits(self.context_window_limit, self.max_files_open, self.per_file_view_window_char_limit)


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a model call or a run failed, in the reference's words and ours."""

    stop_reason: StopReason
    error_type: str
    message: str
    detail: str = ""
    # ErrorInfo.reason of the failed call.
    reason: str = ""


# Facts ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UserSpoke:
    """The run's first fact: new messages, answers to calls that wait, or neither (a compaction was asked for)."""

    settings: Settings
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class ModelReplied:
    """A model call ended well. `finish` is stop, tool_calls, length, content_filter or empty.

    `offered`: the tools that it could call, where the agent has rules about them. `outputs`: log probabilities and
    token ids, where they were asked for and the provider gives them. `handle`: the model that answered, where it is
    not the agent's own.
    """

    step: int
    attempt: int
    message: Message
    usage: Usage
    finish: str
    offered: tuple[str, ...] = ()
    outputs: Mapping[str, Any] | None = None
    handle: str = ""


@dataclass(frozen=True, slots=True)
class ModelFailed:
    """A model call failed for good."""

    step: int
    attempt: int
    failure: Failure


@dataclass(frozen=True, slots=True)
class ContextOverflowed:
    """A request is larger than the window: the provider said so, or our estimate did before the call.

    `limit`: tokens that may be sent from now on in this run, 0: as before. `learned`: tokens of the model's whole
    window as its provider states them, 0 where it does not.
    """

    step: int
    attempt: int
    limit: int = 0
    learned: int = 0


@dataclass(frozen=True, slots=True)
class Compacted:
    """`summary` stands for all that was before the message `kept_from`; with its own id for everything. Without a
    summary there was nothing to compact, and `kept_from` is None, too.
    """

    trigger: Trigger
    summary: Message | None
    kept_from: UUID | None
    stats: CompactionStats
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class ToolsReturned:
    """Every pending call has its answer; `message` holds the returns in the order of the calls.

    `step` is 0 for calls of an earlier run. `invalid`: arguments that a tool rule gave do not fit the tool.
    """

    step: int
    message: Message
    invalid: bool = False


@dataclass(frozen=True, slots=True)
class Reminded:
    """The reminder that told the model to go on, and why."""

    message: Message


@dataclass(frozen=True, slots=True)
class MemberSpoke:
    """A member of the group had its turn, a run of its own; `message` is what it said, without parts if nothing, and
    those of its calls that wait for the client.

    chosen: the name that it chose, to speak next. problem: why it could not speak, as a sentence.
    """

    step: int
    agent_id: UUID
    message: Message
    usage: Usage
    chosen: str = ""
    problem: str = ""

    @property
    def text(self) -> str:
        """All that it said."""
        return "\n".join(part.text for part in self.message.parts if isinstance(part, Text))


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run's last fact."""

    stop_reason: StopReason
    failure: Failure | None = None


Fact = (
    UserSpoke
    | ModelReplied
    | ModelFailed
    | ContextOverflowed
    | Compacted
    | ToolsReturned
    | Reminded
    | MemberSpoke
    | RunEnded
)

# Actions -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CallModel:
    """Make model call number `step`, for the `attempt`th time."""

    step: int
    attempt: int


@dataclass(frozen=True, slots=True)
class RunTools:
    """Answer these calls: of model call number `step`, or (0) of the earlier run that waited for the client."""

    step: int
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Compact:
    """Let a summary stand for the older part of the history."""

    trigger: Trigger


@dataclass(frozen=True, slots=True)
class Remind:
    """Tell the model something of `kind`, and let it go on."""

    kind: Literal["heartbeat", "required"]
    text: str


@dataclass(frozen=True, slots=True)
class Speak:
    """Let a member of the group speak, as turn number `step` of the run; `tool`: that of groups/ that it has.

    `answers`: those of the client to calls of the member that wait, with which it goes on.
    """

    step: int
    agent_id: UUID
    tool: str = ""
    answers: tuple[Decision | Return, ...] = ()


@dataclass(frozen=True, slots=True)
class Finish:
    """End the run."""

    stop_reason: StopReason
    failure: Failure | None = None


Action = CallModel | RunTools | Compact | Remind | Speak | Finish
