"""What each route answers with when all is well. A route without a row here fails a test."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.agent_files import routes as agent_transfer
from gateway.agent_files.schemas import AGENT_FILE, IMPORTED
from gateway.openai_api import routes as openai_compatible
from gateway.openai_api.schemas import OPENAI_MODEL
from gateway.openapi.errors import NOTHING
from gateway.openapi.schemas import (
    FLAG,
    NUMBER,
    OBJECT,
    TEXT,
    WHOLE,
    Schema,
    array,
    by_name,
    choice,
    maybe,
    record,
    some,
)
from gateway.resources.accounts import access_tokens, api_keys, organizations
from gateway.resources.accounts import schemas as access
from gateway.resources.agents import attachments as agent_parts
from gateway.resources.agents import files as agent_files
from gateway.resources.agents import overviews as agent_overviews
from gateway.resources.agents import routes as agents
from gateway.resources.agents import schemas as agent
from gateway.resources.archives import embedding_changes, passages
from gateway.resources.archives import routes as archives
from gateway.resources.archives import schemas as memory
from gateway.resources.blocks import routes as blocks
from gateway.resources.blocks import versions as block_versions
from gateway.resources.blocks.schemas import BLOCK, BLOCK_DIFF, BLOCK_NOW, BLOCK_VERSION
from gateway.resources.checkpoints import routes as checkpoints
from gateway.resources.checkpoints.schemas import CHECKPOINT, REWIND
from gateway.resources.conversations import routes as conversations
from gateway.resources.conversations.schemas import CONVERSATION
from gateway.resources.environments import routes as environments
from gateway.resources.environments import schemas as places
from gateway.resources.executions import routes as executions
from gateway.resources.executions.schemas import EXECUTION_FILE, EXECUTION_FILES, EXECUTIONS, RECEIPT, execution_result
from gateway.resources.folders import files as folder_files
from gateway.resources.folders import routes as folders
from gateway.resources.folders.schemas import AGENT_FILES, FILE, FOLDER, FOLDERS_DESCRIBED
from gateway.resources.groups import routes as groups
from gateway.resources.groups.schemas import GROUP
from gateway.resources.identities import routes as identities
from gateway.resources.identities import schemas as served
from gateway.resources.jobs import routes as jobs
from gateway.resources.jobs.schemas import JOB
from gateway.resources.mcp_servers import by_name as mcp_by_name
from gateway.resources.mcp_servers import routes as mcp_servers
from gateway.resources.mcp_servers.schemas import MCP_CHANGES, MCP_SERVER, MCP_TESTED, MCP_TOOL, NAMED_SERVER
from gateway.resources.messages import routes as message_routes
from gateway.resources.messages import schemas as messages
from gateway.resources.messages import search as message_search
from gateway.resources.messages import stored as stored_messages
from gateway.resources.model_calls import routes as model_calls
from gateway.resources.model_calls import schemas as windows
from gateway.resources.models import routes as models
from gateway.resources.models import windows as learned_windows
from gateway.resources.models.schemas import EMBEDDING_MODEL, LEARNED_WINDOW
from gateway.resources.providers import routes as providers
from gateway.resources.providers.schemas import PROVIDER, PROVIDER_CHECKED, SAID
from gateway.resources.runs import routes as run_routes
from gateway.resources.runs import schemas as runs
from gateway.resources.runs import steps
from gateway.resources.runs import streams as background
from gateway.resources.sandbox_configs import routes as sandbox_configs
from gateway.resources.sandbox_configs.schemas import SANDBOX_CONFIG, SANDBOX_VARIABLE, VARIABLES
from gateway.resources.schedules import routes as schedules
from gateway.resources.schedules.schemas import DONE, SCHEDULE, SCHEDULED, SCHEDULES
from gateway.resources.system import embeddings, health, internal, tags
from gateway.resources.system import not_yet as waiting
from gateway.resources.templates import deployments as internal_templates
from gateway.resources.templates import routes as templates
from gateway.resources.templates import schemas as moved
from gateway.resources.tools import routes as tools
from gateway.resources.tools import runs as tool_runs
from gateway.resources.tools import schemas as tool
from gateway.resources.usage import budgets
from gateway.resources.usage import routes as usage
from gateway.resources.usage.schemas import BUDGET, USAGE_REPORT

JSON_TYPE = "application/json"
SSE_TYPE = "text/event-stream"


@dataclass(frozen=True)
class Answer:
    """A body as JSON, as a stream of events (`event`: what is in their data), either, or another type; or none."""

    body: Schema | None = None
    event: Schema | None = None
    media_type: str = JSON_TYPE
    status: int = 200
    # Statuses that are answered with the same type.
    also: tuple[int, ...] = ()

    def content(self) -> dict[str, Any]:
        """As OpenAPI has it. A stream's schema is that of one event."""
        content = {} if self.body is None else {self.media_type: {"schema": self.body}}
        if self.event is not None:
            data = TEXT | {"contentMediaType": JSON_TYPE, "contentSchema": self.event}
            parts = {"data": some(data, choice("[DONE]")), "event": TEXT, "id": TEXT}
            content[SSE_TYPE] = {"schema": {"type": "object", "properties": parts}}
        return content


EXECUTION_RESULT = execution_result(agent.AGENT)
_TURN = Answer(messages.TURN, messages.EVENT)
_STREAM = Answer(event=messages.EVENT)
_EVENTS = Answer(event=OBJECT)
_NONE = Answer(status=204)
_NULL = Answer(NOTHING)
_COUNT = Answer(WHOLE)
_BINARY = Answer({"type": "string", "format": "binary"}, media_type="application/octet-stream")
_MANY_MESSAGES = Answer(array(messages.MESSAGE))
_MANY_AGENTS = Answer(array(agent.AGENT))
_ONE_AGENT = Answer(agent.AGENT)

ANSWERS: Mapping[Callable[..., Any], Answer] = {
    message_routes.send: _TURN,
    message_routes.send_streaming: _STREAM,
    message_routes.compact: Answer(messages.COMPACTED),
    message_routes.list_messages: _MANY_MESSAGES,
    message_routes.cancel: Answer(messages.FATES),
    conversations.create_conversation: Answer(CONVERSATION),
    conversations.list_conversations: Answer(array(CONVERSATION)),
    conversations.retrieve_conversation: Answer(CONVERSATION),
    conversations.update_conversation: Answer(CONVERSATION),
    conversations.delete_conversation: _NULL,
    conversations.fork_conversation: Answer(CONVERSATION),
    conversations.recompile_conversation: Answer(TEXT),
    conversations.recompile_agent: Answer(TEXT),
    conversations.cancel_conversation: Answer(messages.FATES),
    conversations.send_to_conversation: _TURN,
    conversations.list_conversation_messages: _MANY_MESSAGES,
    conversations.compact_conversation: Answer(messages.COMPACTED),
    background.send_in_background: Answer(runs.RUN),
    background.stream_run: _STREAM,
    background.follow_run: _STREAM,
    background.stream_conversation: _STREAM,
    health.check_ready: Answer(record("Ready", {"version": TEXT, "status": choice("ok")})),
    health.check_health: Answer(record("Health", {"version": TEXT, "status": choice("ok")})),
    stored_messages.list_all_messages: _MANY_MESSAGES,
    stored_messages.retrieve_message: _MANY_MESSAGES,
    stored_messages.update_message: Answer(messages.MESSAGE),
    model_calls.preview_request: Answer(OBJECT),
    model_calls.preview_conversation_request: Answer(OBJECT),
    model_calls.retrieve_context: Answer(windows.OVERVIEW),
    model_calls.generate_text: Answer(windows.GENERATED),
    tags.list_tags: Answer(array(TEXT)),
    agent_overviews.count_agents: _COUNT,
    agent_overviews.retrieve_core_memory: Answer(agent.MEMORY),
    agent_overviews.recompile_system_prompt: Answer(TEXT),
    jobs.list_jobs: Answer(array(JOB)),
    jobs.list_active_jobs: Answer(array(JOB)),
    jobs.retrieve_job: Answer(JOB),
    jobs.cancel_job: Answer(JOB),
    jobs.delete_job: Answer(JOB),
    embeddings.total_storage_size: Answer(NUMBER),
    internal.warm_cache: Answer(record("CacheWarmed", {"collection": TEXT, "status": TEXT, "warmed": FLAG})),
    **dict.fromkeys(waiting.HANDLERS, _NULL),
    agents.create_agent: _ONE_AGENT,
    agents.list_agents: _MANY_AGENTS,
    agents.retrieve_agent: _ONE_AGENT,
    agents.update_agent: _ONE_AGENT,
    agents.delete_agent: _NULL,
    agents.reset_messages: _ONE_AGENT,
    agent_parts.list_blocks: Answer(array(BLOCK)),
    agent_parts.retrieve_block: Answer(BLOCK),
    agent_parts.update_block: Answer(BLOCK),
    agent_parts.attach_block: _ONE_AGENT,
    agent_parts.detach_block: _ONE_AGENT,
    agent_parts.list_tools: Answer(array(tool.TOOL)),
    agent_parts.attach_tool: _ONE_AGENT,
    agent_parts.detach_tool: _ONE_AGENT,
    agent_parts.update_approval: _ONE_AGENT,
    agent_files.list_folders: Answer(array(FOLDER)),
    agent_files.attach_folder: _ONE_AGENT,
    agent_files.detach_folder: _ONE_AGENT,
    agent_files.list_files: Answer(AGENT_FILES),
    agent_files.close_all_files: Answer(array(TEXT)),
    agent_files.open_file: Answer(array(TEXT)),
    agent_files.close_file: _NULL,
    checkpoints.list_conversation_checkpoints: Answer(array(CHECKPOINT)),
    checkpoints.list_agent_checkpoints: Answer(array(CHECKPOINT)),
    checkpoints.rewind_conversation: Answer(REWIND),
    checkpoints.rewind_agent: Answer(REWIND),
    checkpoints.list_conversation_rewinds: Answer(array(REWIND)),
    checkpoints.list_agent_rewinds: Answer(array(REWIND)),
    checkpoints.fork_agent: Answer(agent.FORK),
    checkpoints.fork_agent_of_conversation: Answer(agent.FORK),
    passages.create_passage: Answer(array(memory.PASSAGE)),
    passages.list_passages: Answer(array(memory.PASSAGE)),
    passages.search_passages: Answer(memory.FOUND_PASSAGES),
    passages.update_passage: Answer(memory.PASSAGE),
    passages.delete_passage: _NULL,
    passages.search_everywhere: Answer(array(memory.PASSAGE_HIT)),
    archives.create_archive: Answer(memory.ARCHIVE),
    archives.list_archives: Answer(array(memory.ARCHIVE)),
    archives.retrieve_archive: Answer(memory.ARCHIVE),
    archives.update_archive: Answer(memory.ARCHIVE),
    archives.delete_archive: _NONE,
    archives.list_agents: _MANY_AGENTS,
    archives.attach_archive: _NULL,
    archives.detach_archive: _NULL,
    archives.create_passage: Answer(memory.PASSAGE),
    archives.create_passages: Answer(array(memory.PASSAGE)),
    archives.list_passages: Answer(array(memory.PASSAGE)),
    archives.update_passage: Answer(memory.PASSAGE),
    archives.delete_passage: _NONE,
    blocks.create_block: Answer(BLOCK),
    blocks.list_blocks: Answer(array(BLOCK)),
    blocks.count_blocks: _COUNT,
    blocks.retrieve_block: Answer(BLOCK),
    blocks.update_block: Answer(BLOCK),
    blocks.delete_block: _NULL,
    blocks.list_agents: _MANY_AGENTS,
    block_versions.list_versions: Answer(array(BLOCK_VERSION)),
    block_versions.retrieve_version: Answer(BLOCK_VERSION),
    block_versions.retrieve_value: Answer(BLOCK_VERSION),
    block_versions.diff_versions: Answer(BLOCK_DIFF),
    block_versions.restore_version: Answer(BLOCK_NOW),
    block_versions.undo_change: Answer(BLOCK_NOW),
    block_versions.redo_change: Answer(BLOCK_NOW),
    folders.create_folder: Answer(FOLDER),
    folders.list_folders: Answer(array(FOLDER)),
    folders.count_folders: _COUNT,
    folders.describe_folders: Answer(FOLDERS_DESCRIBED),
    folders.find_folder: Answer(TEXT),
    folders.retrieve_folder: Answer(FOLDER),
    folders.update_folder: Answer(FOLDER),
    folders.delete_folder: _NULL,
    folders.list_passages: Answer(array(memory.PASSAGE)),
    folders.list_agents: Answer(array(TEXT)),
    folder_files.upload_file: Answer(FILE),
    folder_files.list_files: Answer(array(FILE)),
    folder_files.retrieve_file: Answer(FILE),
    folder_files.retry_file: Answer(FILE),
    folder_files.delete_file: _NONE,
    tool_runs.run_source: Answer(messages.TOOL_RETURN),
    tool_runs.run_agent_tool: Answer(EXECUTION_RESULT),
    mcp_by_name.list_named_servers: Answer(by_name(NAMED_SERVER)),
    mcp_by_name.add_named_server: Answer(array(NAMED_SERVER)),
    mcp_by_name.test_server: Answer(MCP_TESTED),
    mcp_by_name.connect_server: _EVENTS,
    mcp_by_name.update_named_server: Answer(NAMED_SERVER),
    mcp_by_name.delete_named_server: Answer(array(NAMED_SERVER)),
    mcp_by_name.list_named_tools: Answer(array(MCP_TOOL)),
    mcp_by_name.resync_named_server: Answer(MCP_CHANGES),
    mcp_by_name.execute_named_tool: Answer(EXECUTION_RESULT),
    mcp_by_name.add_named_tool: Answer(tool.TOOL),
    mcp_by_name.finish_authorization: Answer(TEXT, media_type="text/html", also=(400,)),
    tools.create_tool: Answer(tool.CATALOGUED),
    tools.upsert_tool: Answer(tool.CATALOGUED),
    tools.list_tools: Answer(array(tool.CATALOGUED)),
    tools.count_tools: _COUNT,
    tools.search_tools: Answer(array(tool.TOOL_HIT)),
    tools.add_base_tools: Answer(array(tool.CATALOGUED)),
    tools.generate_schema: Answer(OBJECT),
    tools.import_tool: Answer(tool.CATALOGUED),
    tools.generate_tool: Answer(tool.WRITTEN_TOOL),
    tools.retrieve_tool: Answer(tool.CATALOGUED),
    tools.list_environment_variables: Answer(VARIABLES),
    tools.update_tool: Answer(tool.CATALOGUED),
    tools.delete_tool: _NULL,
    mcp_servers.create_mcp_server: Answer(MCP_SERVER),
    mcp_servers.list_mcp_servers: Answer(array(MCP_SERVER)),
    mcp_servers.connect_mcp_server: _EVENTS,
    mcp_servers.retrieve_mcp_server: Answer(MCP_SERVER),
    mcp_servers.update_mcp_server: Answer(MCP_SERVER),
    mcp_servers.delete_mcp_server: _NONE,
    mcp_servers.refresh_mcp_server: Answer(MCP_CHANGES),
    mcp_servers.list_mcp_tools: Answer(array(tool.TOOL)),
    mcp_servers.retrieve_mcp_tool: Answer(tool.TOOL),
    mcp_servers.run_mcp_tool: Answer(EXECUTION_RESULT),
    executions.list_executions: Answer(EXECUTIONS),
    executions.upload_file: Answer(EXECUTION_FILE),
    executions.list_files: Answer(EXECUTION_FILES),
    executions.retrieve_content: _BINARY,
    executions.delete_file: _NONE,
    executions.stream_execution: _EVENTS,
    executions.cancel_execution: Answer(RECEIPT),
    executions.retrieve_execution: Answer(RECEIPT),
    sandbox_configs.create_config: Answer(SANDBOX_CONFIG),
    sandbox_configs.ensure_e2b_config: Answer(SANDBOX_CONFIG),
    sandbox_configs.ensure_local_config: Answer(SANDBOX_CONFIG),
    sandbox_configs.create_local_config: Answer(SANDBOX_CONFIG),
    sandbox_configs.recreate_local_packages: Answer(SANDBOX_CONFIG),
    sandbox_configs.list_configs: Answer(array(SANDBOX_CONFIG)),
    sandbox_configs.update_config: Answer(SANDBOX_CONFIG),
    sandbox_configs.delete_config: _NULL,
    sandbox_configs.create_variable: Answer(SANDBOX_VARIABLE),
    sandbox_configs.list_variables: Answer(array(SANDBOX_VARIABLE)),
    sandbox_configs.update_variable: Answer(SANDBOX_VARIABLE),
    sandbox_configs.delete_variable: _NULL,
    models.list_models: Answer(agent.MODELS),
    models.list_embedding_models: Answer(array(EMBEDDING_MODEL)),
    openai_compatible.list_agents: Answer(agent.MODELS),
    openai_compatible.retrieve_agent: Answer(OPENAI_MODEL),
    openai_compatible.complete: Answer(OBJECT, OBJECT),
    providers.create_provider: Answer(PROVIDER),
    providers.list_providers: Answer(array(PROVIDER)),
    providers.check_new_provider: Answer(PROVIDER_CHECKED),
    providers.retrieve_provider: Answer(PROVIDER),
    providers.update_provider: Answer(PROVIDER),
    providers.delete_provider: Answer(SAID),
    providers.check_provider: Answer(PROVIDER_CHECKED),
    providers.refresh_provider: Answer(PROVIDER),
    embedding_changes.change_archive: Answer(memory.EMBEDDING_CHANGE, status=202),
    embedding_changes.change_folder: Answer(memory.EMBEDDING_CHANGE, status=202),
    embedding_changes.archive_change: Answer(memory.EMBEDDING_CHANGE),
    embedding_changes.folder_change: Answer(memory.EMBEDDING_CHANGE),
    embedding_changes.roll_archive_back: Answer(memory.EMBEDDING_CHANGE),
    embedding_changes.roll_folder_back: Answer(memory.EMBEDDING_CHANGE),
    embedding_changes.finish_archive: Answer(memory.EMBEDDING_CHANGE),
    embedding_changes.finish_folder: Answer(memory.EMBEDDING_CHANGE),
    learned_windows.list_windows: Answer(array(LEARNED_WINDOW)),
    learned_windows.forget_window: _NULL,
    message_search.search: Answer(array(messages.FOUND)),
    message_search.search_of_agents: Answer(array(messages.FOUND)),
    run_routes.list_runs: Answer(array(runs.RUN)),
    run_routes.list_active_runs: Answer(array(runs.RUN)),
    run_routes.retrieve_run: Answer(runs.RUN),
    run_routes.delete_run: _NULL,
    run_routes.list_run_messages: _MANY_MESSAGES,
    run_routes.list_run_steps: Answer(array(runs.STEP)),
    run_routes.retrieve_run_usage: Answer(runs.RUN_USAGE),
    run_routes.retrieve_run_metrics: Answer(runs.RUN_METRICS),
    run_routes.retrieve_run_trace: Answer(array(runs.SPAN)),
    steps.list_steps: Answer(array(runs.STEP)),
    steps.retrieve_step: Answer(runs.STEP),
    steps.list_step_messages: _MANY_MESSAGES,
    steps.give_feedback: Answer(runs.STEP),
    steps.note_transaction: Answer(runs.STEP),
    steps.retrieve_step_metrics: Answer(runs.STEP_METRICS),
    steps.retrieve_step_trace: Answer(maybe(runs.PROVIDER_TRACE)),
    usage.report_usage: Answer(USAGE_REPORT),
    budgets.list_budgets: Answer(array(BUDGET)),
    budgets.retrieve_budgets: Answer(array(BUDGET)),
    budgets.set_budget: Answer(BUDGET),
    budgets.delete_budget: _NULL,
    schedules.create_schedule: Answer(SCHEDULED),
    schedules.list_schedules: Answer(SCHEDULES),
    schedules.get_schedule: Answer(SCHEDULE),
    schedules.delete_schedule: Answer(DONE),
    environments.register: Answer(places.REGISTERED),
    environments.list_environments: Answer(places.ENVIRONMENTS),
    environments.get_environment: Answer(places.ENVIRONMENT),
    environments.send_to_environment: Answer(places.SENT),
    access_tokens.create_token: Answer(access.TOKEN),
    access_tokens.list_tokens: Answer(access.TOKENS),
    access_tokens.delete_token: _NULL,
    api_keys.create_key: Answer(access.NEW_API_KEY),
    api_keys.list_keys: Answer(array(access.API_KEY)),
    api_keys.delete_key: _NULL,
    organizations.list_organizations: Answer(array(access.ORGANIZATION)),
    organizations.create_organization: Answer(access.ORGANIZATION),
    organizations.update_organization: Answer(access.ORGANIZATION),
    organizations.delete_organization: Answer(access.ORGANIZATION),
    organizations.list_users: Answer(array(access.USER)),
    organizations.create_user: Answer(access.USER),
    organizations.update_user: Answer(access.USER),
    organizations.delete_user: Answer(access.USER),
    agent_transfer.import_agents: Answer(IMPORTED),
    agent_transfer.export_agent: Answer(AGENT_FILE),
    agent_transfer.export_agent_with_skills: Answer(AGENT_FILE),
    templates.create_template: Answer(moved.TEMPLATE),
    templates.update_template: Answer(moved.CHANGED),
    templates.delete_template: Answer(moved.CHANGED),
    templates.save_template: Answer(moved.TEMPLATE),
    templates.roll_back_template: Answer(moved.CHANGED),
    templates.create_agents_of_template: Answer(moved.MADE),
    internal_templates.create_group: Answer(GROUP),
    internal_templates.create_agent: _ONE_AGENT,
    internal_templates.create_block: Answer(BLOCK),
    internal_templates.create_blocks: Answer(array(BLOCK)),
    internal_templates.list_deployment: Answer(moved.DEPLOYMENT),
    internal_templates.delete_deployment: Answer(moved.DELETED),
    identities.list_identities: Answer(served.IDENTITIES),
    identities.count_identities: _COUNT,
    identities.retrieve_identity: Answer(served.IDENTITY),
    identities.create_identity: Answer(served.IDENTITY),
    identities.upsert_identity: Answer(served.IDENTITY),
    identities.update_identity: Answer(served.IDENTITY),
    identities.upsert_properties: _NULL,
    identities.delete_identity: _NULL,
    identities.list_agents: _MANY_AGENTS,
    identities.list_blocks: Answer(array(BLOCK)),
    identities.attach_to_agent: _NULL,
    identities.detach_from_agent: _NULL,
    identities.attach_to_block: _NULL,
    identities.detach_from_block: _NULL,
    groups.list_groups: Answer(array(GROUP)),
    groups.count_groups: _COUNT,
    groups.retrieve_group: Answer(GROUP),
    groups.create_group: Answer(GROUP),
    groups.update_group: Answer(GROUP),
    groups.delete_group: _NULL,
    groups.attach_block: _NULL,
    groups.detach_block: _NULL,
    groups.list_messages: _MANY_MESSAGES,
    groups.update_message: Answer(messages.MESSAGE),
    groups.reset_messages: _NULL,
    groups.list_agent_groups: Answer(array(GROUP)),
}
