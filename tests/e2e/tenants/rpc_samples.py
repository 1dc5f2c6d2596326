"""What requests of RPCs need beside ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.e2e.sdk_methods.world import DOUBLE, EMBEDDING, MODEL
from tests.e2e.tenants.rpcs import Rpc

# They take no id: they list, count and make what is the tenant's, or ask about words.
NAMES_NOTHING = {
    "AccessService.Authenticate",
    "AccessService.GetWebhookSecret",
    "AccessService.ListApiKeys",
    "AccessService.ListOrganizations",
    "AgentMemoryService.FenceRun",
    "AgentMemoryService.PurgeOrganization",
    "AgentService.ListAgentTags",
    "BlockService.ListBlockTags",
    "ExecutionService.FenceRun",
    "ExecutionService.UploadFile",
    "FolderService.CountFolders",
    "FolderService.ListFolders",
    "GroupService.CountGroups",
    "IdentityService.CountIdentities",
    "IdentityService.ListIdentities",
    "LearnedWindowService.ForgetLearnedWindow",
    "LearnedWindowService.ListLearnedWindows",
    "McpService.FinishMcpAuthorization",
    "McpService.GetMcpAuthorization",
    "McpService.ListMcpServers",
    "McpService.TestMcpServer",
    "MessageService.ListAllMessages",
    "ModelService.Embed",
    "ModelService.GetEmbeddingModel",
    "ModelService.GetModel",
    "ModelService.ListEmbeddingModels",
    "ModelService.ListModels",
    "ModelService.Rerank",
    "PassageService.GetVectorStorage",
    "ProviderService.ListProviders",
    "ProviderService.PurgeOrganization",
    "SandboxConfigService.CreateSandboxConfig",
    "SandboxConfigService.EnsureSandboxConfig",
    "SandboxConfigService.ListSandboxConfigs",
    "SandboxConfigService.PurgeOrganization",
    "TemplateService.ListTemplates",
    "ToolService.EnsureBaseTools",
    "ToolService.GenerateToolSchema",
    "ToolService.SearchTools",
    "UsageService.DeleteBudget",
    "UsageService.ListBudgets",
    "UsageService.SetBudget",
}
_HELLO = [{"role": "MESSAGE_ROLE_USER", "content": [{"text": "Hello."}]}]
_TURN = {"turn": {"agentId": "%agent_id", "messages": _HELLO}}
_GENERATION = {
    "request": {"handle": MODEL, "messages": [{"role": "CHAT_ROLE_USER", "parts": [{"text": {"text": "Hello."}}]}]}
}
_GROUP = {"group": {"agentIds": ["%agent_id"], "managerType": "supervisor", "managerAgentId": "%agent_id"}}
_IDENTITY = {"identity": {"identifierKey": "%fresh", "name": "Ada", "identityType": "user"}}
_TOOL = {"tool": {"sourceCode": DOUBLE, "sourceType": "python"}}
_REMOTE = {"name": "%fresh", "transport": {"streamableHttp": {"serverUrl": "%mcp"}}}
_IMPORTED_AGENT = {"agent": {"agentId": "%new_agent_id", "agent": {"name": "%fresh", "model": MODEL}}}
_IMPORTED_CONVERSATION = {"conversation": {"conversationId": "%new_conversation_id", "agentId": "%new_agent_id"}}
_VARIABLE = {"variable": {"key": "%FRESH", "value": "v"}}
_LABELED = {"key": {"blockId": "%block_id"}}
# By RPC, and by RPC and the field that an id is put into where that needs others. "%name" as in samples.py.
SAMPLES: Mapping[str, Any] = {
    "AccessService.CreateApiKey": {"key": {"name": "%fresh", "role": "agent-only"}},
    "AccessService.CreateClientToken": {
        "token": {"hostname": "https://app.test", "policy": [{"agentId": "%agent_id", "access": ["read_messages"]}]}
    },
    "AccessService.CreateUser": {"user": {"name": "%fresh"}},
    "AccessService.UpdateOrganization": {"organization": {"name": "%fresh"}, "updateMask": "name"},
    "AccessService.UpdateUser": {"user": {"name": "%fresh"}, "updateMask": "name"},
    "AgentService.SetToolApproval": {"toolName": "double"},
    "AgentService.RunAgentTool": {"toolName": "double", "argumentsJson": '{"number": 2}'},
    "ConversationService.UpdateConversation": {"conversation": {"summary": "x"}, "updateMask": "summary"},
    "DeviceService.SendDeviceMessages": {"messages": [{"id": "%new_message_id", "bodyJson": "{}"}]},
    "GroupService.CreateGroup": _GROUP,
    "GroupService.UpdateGroup": {
        "group": {"managerType": "supervisor", "managerAgentId": "%agent_id"},
        "updateMask": "managerType,managerAgentId",
    },
    "IdentityService.CreateIdentity": _IDENTITY,
    "IdentityService.UpsertIdentity": _IDENTITY,
    "IdentityService.UpsertIdentityProperties": {"propertiesJson": "[]"},
    "MessageService.SendMessages": _TURN,
    "MessageService.StreamMessages": _TURN,
    "MessageService.StartMessages": _TURN,
    "MessageService.SearchMessages": {"query": "Hello"},
    "MessageService.UpdateMessage": {"userMessage": {"content": [{"text": "Changed."}]}},
    "MessageService.CaptureMessages": {"messages": _HELLO, "requestId": "%uuid"},
    "ModelCallService.PreviewModelCall": _TURN,
    "ModelCallService.GenerateText": {"prompt": "Hello."},
    "ScheduleService.CreateSchedule": {"input": {"messages": _HELLO}, "time": {"scheduledAt": "2099-01-01T00:00:00Z"}},
    "StepService.SetStepTransaction": {"transactionId": "t"},
    "TemplateService.CreateTemplate": {"template": {"name": "%fresh"}, "agentFileJson": "{}"},
    "TemplateService.UpdateTemplate": {"agentFileJson": "{}"},
    "TransferService.ImportAgents agent": _IMPORTED_AGENT,
    "TransferService.ImportAgents conversation": _IMPORTED_CONVERSATION,
    "TransferService.ImportAgents group": {"group": {"groupId": "%new_group_id", "agentIds": ["%new_agent_id"]}},
    "ChatService.Generate": _GENERATION,
    "ChatService.StreamGenerate": _GENERATION,
    "ChatService.CountTokens": _GENERATION,
    "ChatService.PreviewGeneration": _GENERATION,
    "ProviderService.CreateProvider": {"provider": {"name": "%fresh", "providerType": "openai", "apiKey": "sk-x"}},
    "ProviderService.CheckProvider provider": {"provider": {"providerType": "openai", "baseUrl": "%openai_url"}},
    "AgentMemoryService.CreateAgentMemory": {"blocks": [{"id": "%new_block_id", "label": "mine", "value": "v"}]},
    "AgentMemoryService.ApplyTool": {"toolName": "core_memory_append", "argumentsJson": "{}"},
    "AgentMemoryService.CopyBlocks": {"requestId": "%fresh"},
    "AgentMemoryService.RestoreBlocks": {"requestId": "%fresh"},
    "ArchiveService.CreateArchive": {"archive": {"name": "%fresh", "embedding": EMBEDDING}},
    "ArchiveService.ChangeEmbedding": {"embedding": EMBEDDING},
    "BlockService.CreateBlock": {"block": {"label": "%fresh", "value": "v"}},
    "BlockService.UpdateBlock block": _LABELED,
    "BlockService.UpdateBlock key": {"block": {"value": "Mine."}, "updateMask": "value"},
    "BlockService.DiffBlockVersions": {"fromVersion": "1"},
    "BlockService.GetBlockVersion": {"version": "1"},
    "BlockService.RestoreBlock": {"version": "1"},
    "FolderService.CreateFolder": {"folder": {"name": "%fresh", "embedding": EMBEDDING}},
    "FolderService.UploadFile": {
        "header": {"fileId": "%new_file_id", "folderId": "%folder_id", "name": "new.txt", "isText": True}
    },
    "PassageService.CreatePassages": {"passages": [{"text": "Mine."}]},
    "PassageService.SearchPassages": {"query": "There"},
    "PassageService.UpdatePassage": {"passage": {"text": "Mine."}, "updateMask": "text"},
    "ExecutionService.ExecuteTool": {"callKey": "%fresh", "argumentsJson": '{"number": 2}'},
    "ExecutionService.RunSource": _TOOL | {"callKey": "%fresh", "argumentsJson": '{"number": 2}'},
    "McpService.CreateMcpServer": _REMOTE,
    "McpService.UpdateMcpServer": _REMOTE | {"updateMask": "name"},
    "McpService.RunMcpTool": {"argumentsJson": "{}"},
    "SandboxConfigService.SetEnvironment": {
        "owner": {"agentId": "%agent_id"},
        "variables": [{"key": "%FRESH", "value": "v"}],
    },
    "SandboxConfigService.UpdateSandboxConfig": {"configJson": '{"timeout": 5}'},
    "SandboxConfigService.CreateVariable": _VARIABLE,
    "SandboxConfigService.UpdateVariable": {"variable": {"value": "v"}, "updateMask": "value"},
    "ToolService.CreateTool": _TOOL,
    "ToolService.UpsertTool": _TOOL,
    "ToolService.UpdateTool": {"tool": {"description": "Mine."}, "updateMask": "description"},
    "ToolService.ImportTool": {"library": "langchain", "definitionJson": "{}"},
}
# By RPC and field: the messages of a stream that go before.
FIRST: Mapping[str, Sequence[Any]] = {
    "TransferService.ImportAgents conversation": (_IMPORTED_AGENT,),
    "TransferService.ImportAgents messages": (_IMPORTED_AGENT, _IMPORTED_CONVERSATION),
    "TransferService.ImportAgents group": (_IMPORTED_AGENT,),
}
# Of these a request has one: the first is given where another is not attacked.
ALTERNATIVES = {"PassageService": ("archive_id", "agent_id", "folder_id")}


def sample_of(rpc: Rpc, way: tuple[str, ...]) -> Any:
    """Returns what a request needs beside the id in a field."""
    return SAMPLES.get(f"{rpc.name} {way[0]}") or SAMPLES.get(rpc.name, {})


def first_of(rpc: Rpc, way: tuple[str, ...]) -> Sequence[Any]:
    """Returns the messages of a stream that go before one with an id in a field."""
    return FIRST.get(f"{rpc.name} {way[0]}", ())
