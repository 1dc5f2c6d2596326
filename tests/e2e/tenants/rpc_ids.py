"""What the ids in requests of RPCs are of, and what an unknown one comes to."""

from __future__ import annotations

from collections.abc import Sequence
from re import fullmatch

from tests.e2e.tenants.rpcs import Rpc

_ALIASES = {
    "agent_tool_id": "tool_id",
    "checkpoint_id": "talk_checkpoint_id",
    "header_id": "file_id",
    "identitie_id": "identity_id",
    "isolated_block_id": "block_id",
    "managed_group_id": "group_id",
    "manager_agent_id": "agent_id",
    "name": "template_name",
    "new_agent_id": "spare_agent_id",
    "new_conversation_id": "spare_conversation_id",
    "organization_id": "org_id",
    "rewind_id": "rewind_id",
    "schedule_id": "scheduled_message_id",
    "shared_block_id": "block_id",
    "source_agent_id": "agent_id",
    "source_conversation_id": "conversation_id",
    "target_agent_id": "agent_id",
    "variable_id": "env_var_id",
}
# By service and field, and by RPC and field, where a name means something else than elsewhere.
_EXCEPTIONS = {
    "ExecutionService file_id": "execution_file_id",
    "McpService id": "mcp_server_id",
    "McpService.RunMcpTool tool_id": "mcp_tool_id",
    "MessageService.UpdateMessage message_id": "message_id",
    "ConversationService.ForkConversation message_id": "talk_message_id",
    "ProviderService id": "provider_id",
    "RunService.StreamRun run_id": "talk_run_id",
    "SandboxConfigService id": "sandbox_config_id",
    "SandboxConfigService.DeleteVariable id": "env_var_id",
    "SandboxConfigService.UpdateVariable id": "env_var_id",
}
# The caller makes up the id, for something new.
_MINTED: Sequence[str] = (
    r".*\.(Create|Upsert|Register|Import)\w+ (\w+\.)*(id|\w*_id)",
    r".* new_\w+_id",
    r".* rewind_id",
    r"MessageService\..* (turn\.)?run_id",
    r"ModelCallService\.PreviewModelCall turn\.run_id",
    r"DeviceService\.SendDeviceMessages messages\.id",
    r"PassageService\.CreatePassages passages\.id",
    r"FolderService\.UploadFile header\.file_id",
    r"McpService\.RunMcpTool call_key",
    r"(AgentMemoryService\.ApplyTool|ExecutionService\.(ExecuteTool|RunSource)|AgentService\.RunAgentTool) call_key",
)
# Of the fields that look so, those that name what is there.
_NOT_MINTED = (
    r"AccessService\.CreateApiKey key\.user_id",
    r"AccessService\.CreateClientToken token\.policy\.agent_id",
    r"AccessService\.CreateUser user\.organization_id",
    r"(ConversationService\.CreateConversation|ScheduleService\.CreateSchedule) agent_id",
    r"GroupService\.CreateGroup group\.manager_agent_id",
    r"IdentityService\.UpsertIdentityProperties identity_id",
    r"PassageService\.CreatePassages (agent|archive)_id",
    r"SandboxConfigService\.CreateVariable sandbox_config_id",
    r"TransferService\.ImportAgents (conversation\.agent_id|messages\.conversation_id)",
)
_ELSEWHERE = "the agent service knows these; here they are words"
_OPERATOR = "the operator alone names tenants"
# RPCs and fields in which an unknown id is no mistake, and what it comes to.
_AS_OF_NOTHING: Sequence[tuple[str, str]] = (
    (r".*\.(List|Count|Search|BatchGet|BatchFind)\w+ .*", "a list is narrowed to nothing"),
    (r".*\.(Purge|Detach)\w+ .*", "of what is not there nothing is taken away"),
    (r".*\.Update\w+ \w+\.id", "the request's own field says which"),
    (r"(AgentMemory|Archive|Block|Folder|Passage|Execution|SandboxConfig)Service\..*(agent|identity)_ids?", _ELSEWHERE),
    (r"(AgentMemory|Execution)Service\..*(run|step|conversation)_ids?", _ELSEWHERE),
    (r"(Chat|Forward|Usage)Service\..*(agent|run|step)_id", _ELSEWHERE),
    (
        r"GroupService\.\w+ group\.shared_block_ids",
        "the memory service knows blocks, and is asked by whoever shares them",
    ),
    (r"AccessService\..*(Organization .*|organization_id)", _OPERATOR),
    (r"AgentService\.RenameTool tool_id", "no agent has it"),
    (r"RunService\.StreamRun agent_id", "it says whose default conversation is meant, and nothing of another"),
    (r"RunService\.StreamRun conversation_id", "the run is of another"),
    (r"TransferService\.ImportAgents .*", "what a stream names it has named before, or it is the caller's word"),
    (r"ProviderService\.DeleteProvider id", "deleting is idempotent"),
    (r"ProviderService\.CheckProvider provider\.id", "not looked at: the request says all of the provider"),
    (r"ExecutionService\.RunSource tool\.id", "not looked at: the request says all of the tool"),
    (r"ExecutionService\.(ExecuteTool|RunSource) file_ids", "the receipt says that the file is not there"),
    (r"SandboxConfigService\.SetEnvironment owner\.sandbox_config_id", "refused whatever it is"),
    (r"SandboxConfigService\.SetEnvironment variables\.id", "not looked at: variables have keys"),
    (r"ExecutionService\.ExecuteTool agent_tool_ids", "those of Loci's tools that use them look in the tenant"),
    (r"RunService\.CancelRuns .*", "of what does not run nothing is cancelled"),
    (r"DeviceService\.AcknowledgeDeviceMessages message_ids", "what was never sent is not waited for"),
    (r"ExecutionService\.CancelExecution call_key", "of what does not run nothing is cancelled"),
)


def is_minted(rpc: Rpc, way: tuple[str, ...]) -> bool:
    """Returns whether the caller makes up the id, for something new."""
    place = f"{rpc.name} {'.'.join(way)}"
    return any(fullmatch(each, place) for each in _MINTED) and not any(fullmatch(each, place) for each in _NOT_MINTED)


def as_of_nothing(rpc: Rpc, way: tuple[str, ...]) -> str:
    """Returns what an unknown id comes to there; "" where it is a mistake."""
    place = f"{rpc.name} {'.'.join(way)}"
    return next((why for places, why in _AS_OF_NOTHING if fullmatch(places, place)), "")


def thing_of(rpc: Rpc, way: tuple[str, ...]) -> str:
    """Returns the name of the thing that a field's id is of."""
    name = way[-1].removesuffix("s") if way[-1].endswith("_ids") else way[-1]
    for key in (f"{rpc.name} {'.'.join(way)}", f"{rpc.method.containing_service.name} {name}"):
        if key in _EXCEPTIONS and (name != "id" or len(way) == 1):
            return _EXCEPTIONS[key]
    if name == "id":
        name = f"{way[-2].removesuffix('s')}_id"
    return _ALIASES.get(name, name)
