"""Puts the agent service together. Tests do it with this, too."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from loci.agent.v1 import (
    access_service_pb2,
    agent_service_pb2,
    checkpoint_service_pb2,
    conversation_service_pb2,
    device_service_pb2,
    group_service_pb2,
    identity_service_pb2,
    learned_window_service_pb2,
    message_service_pb2,
    model_call_service_pb2,
    run_service_pb2,
    schedule_service_pb2,
    step_service_pb2,
    template_service_pb2,
    transfer_service_pb2,
)
from loci.agent.v1.access_service_pb2_grpc import add_AccessServiceServicer_to_server
from loci.agent.v1.agent_service_pb2_grpc import add_AgentServiceServicer_to_server
from loci.agent.v1.checkpoint_service_pb2_grpc import add_CheckpointServiceServicer_to_server
from loci.agent.v1.conversation_service_pb2_grpc import add_ConversationServiceServicer_to_server
from loci.agent.v1.device_service_pb2_grpc import add_DeviceServiceServicer_to_server
from loci.agent.v1.group_service_pb2_grpc import add_GroupServiceServicer_to_server
from loci.agent.v1.identity_service_pb2_grpc import add_IdentityServiceServicer_to_server
from loci.agent.v1.learned_window_service_pb2_grpc import add_LearnedWindowServiceServicer_to_server
from loci.agent.v1.message_service_pb2_grpc import add_MessageServiceServicer_to_server
from loci.agent.v1.model_call_service_pb2_grpc import add_ModelCallServiceServicer_to_server
from loci.agent.v1.run_service_pb2_grpc import add_RunServiceServicer_to_server
from loci.agent.v1.schedule_service_pb2_grpc import add_ScheduleServiceServicer_to_server
from loci.agent.v1.step_service_pb2_grpc import add_StepServiceServicer_to_server
from loci.agent.v1.template_service_pb2_grpc import add_TemplateServiceServicer_to_server
from loci.agent.v1.transfer_service_pb2_grpc import add_TransferServiceServicer_to_server
from services.agent.adapters.callbacks import HttpPoster
from services.agent.adapters.peers import Peers
from services.agent.adapters.stores import Stores
from services.agent.core.ports_streams import Notifier
from services.agent.driving.agent_calls import AgentTools
from services.agent.driving.isolation import Isolation
from services.agent.driving.lease_keeper import CAPACITY, LeaseKeeper
from services.agent.driving.nested_turns import NestedTurns
from services.agent.driving.speakers import Speakers
from services.agent.driving.worker import Worker
from services.agent.edge import Edge
from services.agent.effects import Ports
from services.agent.recall.filling import VectorFiller
from services.agent.resources.access import service as access
from services.agent.resources.access.service import Tenants
from services.agent.resources.access.servicer import AccessServicer
from services.agent.resources.agents.catalogues import Catalogues
from services.agent.resources.agents.folders import AgentFolders
from services.agent.resources.agents.model.settings import Defaults
from services.agent.resources.agents.service import Agents
from services.agent.resources.agents.servicer import AgentServicer
from services.agent.resources.agents.tool_state import StoredAgentStates
from services.agent.resources.callbacks import service as run_callbacks
from services.agent.resources.checkpoints.rewinds import Rewinds
from services.agent.resources.checkpoints.service import Checkpoints
from services.agent.resources.checkpoints.servicer import CheckpointServicer
from services.agent.resources.conversations import service as conversation_service
from services.agent.resources.conversations.service import Conversations
from services.agent.resources.conversations.servicer import ConversationServicer
from services.agent.resources.devices.connections import DeviceConnections
from services.agent.resources.devices.servicer import DeviceServicer
from services.agent.resources.groups.service import Groups
from services.agent.resources.groups.servicer import GroupServicer
from services.agent.resources.groups.turns import GroupTurns
from services.agent.resources.identities import service as identity_service
from services.agent.resources.identities.service import Identities
from services.agent.resources.identities.servicer import IdentityServicer
from services.agent.resources.learned_windows.servicer import LearnedWindowServicer
from services.agent.resources.messages import embedding as revised
from services.agent.resources.model_calls.service import StandaloneModelCalls
from services.agent.resources.model_calls.servicer import ModelCallServicer
from services.agent.resources.outbox import service as outbox
from services.agent.resources.outbox.service import OutboxWorker
from services.agent.resources.schedules.scheduler import Scheduler
from services.agent.resources.schedules.servicer import ScheduleServicer
from services.agent.resources.steps.servicer import StepServicer
from services.agent.resources.templates.servicer import TemplateServicer
from services.agent.resources.tool_runs.service import ToolRuns
from services.agent.resources.transfers.service import Transfers
from services.agent.resources.transfers.servicer import TransferServicer
from services.agent.servicer.messages import MessageServicer
from services.agent.servicer.runs import RunServicer
from services.agent.settings import EXTERNAL_LISTEN, CallbackSettings, ExternalSettings
from services.agent.streams.broadcast import EventHub
from services.agent.streams.publisher import EventPublisher
from services.agent.streams.reading import Reader
from services.agent.streams.recorder import Recorder
from services.common.context import Signer, Verifier
from services.common.server import Registration, Server, make_server

AUDIENCE = "agent"
_SERVICES = tuple(
    service.full_name
    for module in (
        access_service_pb2,
        agent_service_pb2,
        checkpoint_service_pb2,
        conversation_service_pb2,
        device_service_pb2,
        group_service_pb2,
        identity_service_pb2,
        learned_window_service_pb2,
        message_service_pb2,
        model_call_service_pb2,
        run_service_pb2,
        schedule_service_pb2,
        step_service_pb2,
        template_service_pb2,
        transfer_service_pb2,
    )
    for service in module.DESCRIPTOR.services_by_name.values()
)


@dataclass(frozen=True, slots=True)
class AgentProcess:
    """Servers, bound and not started, and what runs beside them. Start the lease keeper before, stop it after them."""

    servers: Sequence[Server]
    lease_keeper: LeaseKeeper
    deliveries: OutboxWorker
    # Apart from the others: receivers may be slow.
    callbacks: OutboxWorker
    # Stopped after the lease keeper: runs that are let go have shown something.
    recorder: Recorder
    # None where messages get no vectors.
    filler: VectorFiller | None
    scheduler: Scheduler
    devices: DeviceConnections


def build(
    *,
    listen: str,
    external: ExternalSettings,
    verifier: Verifier,
    signer: Signer,
    defaults: Defaults,
    callbacks: CallbackSettings,
    stores: Stores,
    peers: Peers,
    run_timeout: float,
    notifier: Notifier,
    stream_keep: timedelta,
    message_vectors: bool = True,
    capacity: int = CAPACITY,
    isolation: Isolation | None = None,
) -> AgentProcess:
    """Raises SettingsError where an address cannot be used."""
    states = StoredAgentStates(stores.agents, peers.memory, peers.tools)
    hub, recorder = EventHub(), Recorder(stores.frames, keep=stream_keep)
    reader = Reader(stores.journal, hub, stores.frames, notifier, keep=stream_keep)
    nested = NestedTurns(reader)
    agent_tools = AgentTools(stores.directory, nested, longest_seconds=run_timeout)
    ports = Ports(
        stores.journal, peers.models, peers.memory, peers.tools, stores.recall, states, agent_tools, Speakers(nested)
    )
    worker = nested.worker = Worker(stores.journal, ports, EventPublisher(hub, recorder, notifier), signer)
    filler = None
    if message_vectors:
        filler = VectorFiller(stores.vectors, peers.embedder, signer, lambda: worker.load)
        worker.on_run_end = filler.note
    rewinds = Rewinds(stores.rewinds, stores.checkpoints, peers.versioned_memories)
    handlers = {
        **rewinds.handlers(),
        **outbox.handlers(peers.memories, peers.tool_catalogue, stores.eraser),
        **conversation_service.handlers(peers.conversation_memories, stores.conversation_eraser),
        **identity_service.handlers(peers.identity_memories),
        revised.KIND: revised.MessageEmbedding(stores.revised, peers.embedder if message_vectors else None).deliver,
        **access.handlers(stores.tenant_eraser, stores.agents, peers.tenant_peers),
    }
    deliveries = OutboxWorker(stores.outbox, handlers, signer)
    poster = HttpPoster(allow_private=callbacks.allow_private)
    callback_sender = run_callbacks.Callbacks(poster, stores.callbacks, callbacks.secret)
    callback_deliveries = OutboxWorker(stores.outbox, {run_callbacks.KIND: callback_sender.deliver}, signer)
    agents = Agents(
        stores.agents,
        peers.memories,
        peers.tool_catalogue,
        peers.model_catalogue,
        defaults,
        stores.identities,
        stores.prompts,
    )
    identities = Identities(stores.identities, peers.identity_memories)
    groups = Groups(stores.groups, peers.shared_blocks)
    catalogues = Catalogues(peers.tool_catalogue, peers.model_catalogue)
    folders = AgentFolders(stores.agents, peers.memories, catalogues, agents)
    conversations = Conversations(
        stores.conversations,
        peers.conversation_memories,
        stores.agents,
        peers.model_catalogue,
        stores.history,
        stores.prompts,
    )
    checkpoints = Checkpoints(
        stores.checkpoints, peers.versioned_memories, stores.agents, agents, conversations, rewinds
    )
    transfers = Transfers(
        stores.transfers,
        stores.agents,
        peers.memories,
        peers.transfer_memories,
        peers.tool_catalogue,
        catalogues,
        defaults,
    )
    messages = MessageServicer(
        stores.history,
        stores.messages,
        stores.prompts,
        peers.model_catalogue,
        stores.search,
        worker,
        reader,
        GroupTurns(stores.groups, stores.group_logs),
        longest_seconds=run_timeout,
        allow_private_urls=callbacks.allow_private,
    )
    model_calls = StandaloneModelCalls(stores.peeks, peers.memory, peers.tools, peers.models, peers.renderer)
    tool_runs = ToolRuns(stores.agents, stores.runs, ports, signer)
    lease_keeper = LeaseKeeper(stores.leases, worker, notifier, capacity=capacity, isolation=isolation)
    scheduler = Scheduler(stores.due, worker.on_successor, run_timeout=run_timeout)
    schedules = ScheduleServicer(stores.schedules, scheduler.wake, allow_private_urls=callbacks.allow_private)
    devices = DeviceConnections(stores.devices)
    lease_keeper.on_device_notice = devices.wake
    servicers: list[Registration] = [
        (
            add_AccessServiceServicer_to_server,
            AccessServicer(stores.credentials, Tenants(stores.tenants), callbacks.secret),
        ),
        (add_AgentServiceServicer_to_server, AgentServicer(agents, folders, tool_runs, deliveries.wake)),
        (add_CheckpointServiceServicer_to_server, CheckpointServicer(checkpoints)),
        (add_ConversationServiceServicer_to_server, ConversationServicer(conversations, deliveries.wake)),
        (add_DeviceServiceServicer_to_server, DeviceServicer(stores.devices, devices, notifier)),
        (add_GroupServiceServicer_to_server, GroupServicer(groups, agents.delete, deliveries.wake)),
        (add_IdentityServiceServicer_to_server, IdentityServicer(identities, agents, deliveries.wake)),
        (add_LearnedWindowServiceServicer_to_server, LearnedWindowServicer(stores.learned_windows)),
        (add_MessageServiceServicer_to_server, messages),
        (add_ModelCallServiceServicer_to_server, ModelCallServicer(model_calls)),
        (
            add_RunServiceServicer_to_server,
            RunServicer(stores.runs, peers.tool_catalogue, worker, reader, stores.attaching),
        ),
        (add_ScheduleServiceServicer_to_server, schedules),
        (add_StepServiceServicer_to_server, StepServicer(stores.steps)),
        (add_TemplateServiceServicer_to_server, TemplateServicer(stores.templates)),
        (add_TransferServiceServicer_to_server, TransferServicer(transfers)),
    ]
    servers = [make_server(listen, servicers=servicers, service_names=_SERVICES, audience=AUDIENCE, verifier=verifier)]
    if external.listen is not None:
        servers.append(
            make_server(
                external.listen,
                servicers=servicers,
                service_names=_SERVICES,
                audience=AUDIENCE,
                edge_authenticate=Edge(
                    external.password, signer, stores.credentials, require_key=external.require_key
                ).authenticate,
                setting=EXTERNAL_LISTEN,
            )
        )

    async def tell_ready(holds: bool) -> None:
        await asyncio.gather(*(server.tell_ready(holds) for server in servers))

    # A replica whose runs others may take is sent no more of them.
    lease_keeper.on_lease = tell_ready
    return AgentProcess(servers, lease_keeper, deliveries, callback_deliveries, recorder, filler, scheduler, devices)
