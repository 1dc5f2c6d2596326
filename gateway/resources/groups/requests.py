"""Creating and changing groups."""

from typing import Annotated, Literal

from google.protobuf.field_mask_pb2 import FieldMask
from pydantic import Field

from gateway.rest.body import Body, Json, Positive, dump
from gateway.rest.request_model import RequestModel
from loci.agent.v1 import group_pb2
from loci.agent.v1 import group_service_pb2 as wire
from services.common.fields import When
from services.common.ids import to_public, uuid7


class RoundRobinManager(Body):
    """Each agent speaks in its turn."""

    manager_type: Literal["round_robin"]
    max_turns: Positive | None = None


class SwarmManager(Body):
    """Who has the floor speaks, and may hand it over. Loci's own: the reference declares it and refuses it."""

    manager_type: Literal["swarm"]


class _UpdateSupervisor(Body):
    manager_type: Literal["supervisor"]


class _UpdateDynamic(Body):
    manager_type: Literal["dynamic"]
    termination_token: str | None = None
    max_turns: Positive | None = None


class _UpdateSleeptime(Body):
    manager_type: Literal["sleeptime"]
    sleeptime_agent_frequency: Positive | None = None


class _UpdateVoiceSleeptime(Body):
    manager_type: Literal["voice_sleeptime"]
    max_message_buffer_length: Positive | None = None
    min_message_buffer_length: Positive | None = None


class SupervisorManager(_UpdateSupervisor):
    """An agent asks the others."""

    manager_agent_id: str


class DynamicManager(_UpdateDynamic):
    """An agent says who speaks next, until it says the termination token, "DONE!" by default."""

    manager_agent_id: str


class SleeptimeManager(_UpdateSleeptime):
    """The others tend an agent's memory after every so many of its turns."""

    manager_agent_id: str


class VoiceSleeptimeManager(_UpdateVoiceSleeptime):
    """The same of an agent that is spoken with."""

    manager_agent_id: str


class SupervisorManagerUpdate(_UpdateSupervisor):
    """A supervisor; without an agent the one that there is."""

    manager_agent_id: str | None = None


class DynamicManagerUpdate(_UpdateDynamic):
    """The same of a dynamic group."""

    manager_agent_id: str | None = None


class SleeptimeManagerUpdate(_UpdateSleeptime):
    """The same of a sleep-time group."""

    manager_agent_id: str | None = None


class VoiceSleeptimeManagerUpdate(_UpdateVoiceSleeptime):
    """The same of a voice sleep-time group."""

    manager_agent_id: str | None = None


ManagerConfig = Annotated[
    RoundRobinManager | SwarmManager | SupervisorManager | DynamicManager | SleeptimeManager | VoiceSleeptimeManager,
    Field(discriminator="manager_type"),
]
ManagerConfigUpdate = Annotated[
    RoundRobinManager
    | SwarmManager
    | SupervisorManagerUpdate
    | DynamicManagerUpdate
    | SleeptimeManagerUpdate
    | VoiceSleeptimeManagerUpdate,
    Field(discriminator="manager_type"),
]


# REST sets these by `manager_config`, and what was made from a template by the template.
_NOT_IN_BODIES = (
    "manager_type",
    "manager_agent_id",
    "manager_settings",
    "template_id",
    "base_template_id",
    "deployment_id",
)


class CreateGroup(RequestModel, of=group_pb2.Group, when=When.CREATION, leave=_NOT_IN_BODIES):
    """Body of groups.create."""

    manager_config: ManagerConfig = Field(default_factory=lambda: RoundRobinManager(manager_type="round_robin"))
    # Here the API has no null.
    shared_block_ids: list[str] = Field(default_factory=list)


class UpdateGroup(RequestModel, of=group_pb2.Group, when=When.CHANGE, leave=_NOT_IN_BODIES):
    """Body of groups.update: only what is sent changes; lists are sent whole."""

    manager_config: ManagerConfigUpdate | None = None


def create_request(body: CreateGroup) -> wire.CreateGroupRequest:
    """Returns the request of CreateGroup, with an id, so that it may be sent twice."""
    return wire.CreateGroupRequest(
        group_id=to_public("group", uuid7()), group=body.message(**_manager(body.manager_config))
    )


def update_request(group_id: str, body: UpdateGroup) -> wire.UpdateGroupRequest | None:
    """Returns the request of UpdateGroup; None when nothing changes."""
    manager = {} if body.manager_config is None else _manager(body.manager_config)
    mask = FieldMask(paths=sorted((*body.mask().paths, *manager)))
    if not mask.paths:
        return None
    return wire.UpdateGroupRequest(group_id=group_id, group=body.message(**manager), update_mask=mask)


def _manager(config: Body) -> Json:
    """Returns the fields of the message. A setting that is sent as null is to be none."""
    sent = {name: getattr(config, name) for name in config.model_fields_set}
    fields: Json = {name: sent.pop(name, None) for name in ("manager_type", "manager_agent_id")}
    return {name: value for name, value in fields.items() if value is not None} | {
        "manager_settings_json": dump(sent) if sent else ""
    }
