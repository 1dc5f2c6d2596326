"""Templates of agents and their versions."""

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from gateway.agent_files.exporter import ExportOptions, export
from gateway.agent_files.importer import import_tools
from gateway.agent_files.instantiation import make_agents
from gateway.agent_files.reader import of_document
from gateway.agent_files.templates import TemplateValues
from gateway.openapi.answers import returns
from gateway.openapi.schemas import array
from gateway.resources.templates import requests as bodies
from gateway.resources.templates.schemas import CHANGED, MADE, TEMPLATE
from gateway.rest.body import Json, dump
from gateway.rest.convert import Rest, moment
from gateway.rest.not_yet import NotYet
from gateway.rest.paging import FIRST_PAGE, paged
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from loci.agent.v1 import template_service_pb2 as wire
from loci.common.v1.page_pb2 import PageRequest
from services.common.ids import to_public, uuid7

router = APIRouter(prefix="/templates", tags=["templates"])

# What this server calls the project of templates that have none.
_PROJECT = "default"
_UPGRADES = (
    "migrate_agents",
    "preserve_core_memories_on_migration",
    "preserve_environment_variables_on_migration",
    "preserve_sources_on_migration",
    "block_reconciliation_strategy",
)


@router.post("")
@returns(TEMPLATE)
async def create_template(body: bodies.CreateTemplate, loci: Loci) -> Response:
    """Makes a template of an agent, without what was said, or of an agent file. Its first version is saved at once."""
    if isinstance(body, bodies.OfAgent):
        document = await export(loci, body.agent_id, ExportOptions(scrub_messages=True))
    else:
        document = await _checked(loci, body.agent_file, update_tools=body.update_existing_tools)
    request = wire.CreateTemplateRequest(
        template_id=to_public("template", uuid7()),
        template=wire.Template(name=body.name or ""),
        agent_file_json=dump(document),
    )
    return _answer((await loci.peers.call(loci.peers.templates.CreateTemplate, request)).template)


@router.get("")
@returns(array(TEMPLATE))
@paged(50)
async def list_templates(loci: Loci, name: str | None = None, page: PageRequest = FIRST_PAGE) -> Response:
    """Returns a page of templates, newest first. (Loci)"""
    request = wire.ListTemplatesRequest(page=page, name=name)
    listed = await loci.peers.call(loci.peers.templates.ListTemplates, request)
    return json_response([_rest(template) for template in listed.templates])


@router.patch("/{template_name}")
@returns(CHANGED)
async def update_template(template_name: str, body: bodies.UpdateTemplate, loci: Loci) -> Response:
    """Replaces what is worked on."""
    document = await _checked(loci, body.agent_file_json, update_tools=body.update_existing_tools)
    request = wire.UpdateTemplateRequest(
        name=template_name, agent_file_json=dump(document), save_existing=body.save_existing_changes
    )
    await loci.peers.call(loci.peers.templates.UpdateTemplate, request)
    return json_response({"success": True, "message": None})


@router.delete("/{template_name}")
@returns(CHANGED)
async def delete_template(template_name: str, loci: Loci) -> Response:
    """Deletes a template with its versions; agents that were made of it stay."""
    await loci.peers.call(loci.peers.templates.DeleteTemplate, wire.DeleteTemplateRequest(name=template_name))
    return json_response({"success": True})


@router.post("/{template_name}/save")
@returns(TEMPLATE)
async def save_template(template_name: str, loci: Loci, body: bodies.SaveTemplate | None = None) -> Response:
    """Saves what is worked on as the next version."""
    body = body or bodies.SaveTemplate()
    if names := [name for name in _UPGRADES if getattr(body, name)]:
        raise NotYet(
            f"`{names[0]}`: agents are not upgraded to new versions of their templates yet; leave it out, and make new "
            "agents of the version"
        )
    request = wire.SaveTemplateVersionRequest(name=template_name, message=body.message)
    return _answer((await loci.peers.call(loci.peers.templates.SaveTemplateVersion, request)).template)


@router.post("/{template_name}/rollback")
@returns(CHANGED)
async def roll_back_template(template_name: str, body: bodies.RollBackTemplate, loci: Loci) -> Response:
    """Works on a saved version again."""
    request = wire.RollBackTemplateRequest(name=template_name, version=bodies.version_of(body.version))
    await loci.peers.call(loci.peers.templates.RollBackTemplate, request)
    return json_response({"success": True, "message": None})


# A project may stand before the name.
@router.post("/{template_version:path}/agents")
@returns(MADE)
async def create_agents_of_template(template_version: str, body: bodies.AgentsOfTemplate, loci: Loci) -> Response:
    """Makes the agents of a template."""
    name, version = bodies.named_version(template_version)
    filling = TemplateValues(
        name=body.agent_name,
        variables=body.memory_variables or {},
        secrets=body.tool_variables or {},
        messages=[message.model_dump(mode="json") for message in body.initial_message_sequence or ()],
        tags=tuple(body.tags or ()),
        identity_ids=tuple(body.identity_ids or ()),
    )
    created = await make_agents(loci, name, version, filling)
    group_id = created.group_ids[0] if created.group_ids else None
    return json_response({"agent_ids": created.agent_ids, "deployment_id": created.deployment_id, "group_id": group_id})


async def _checked(loci: Services, document: Json, *, update_tools: bool) -> Any:
    """Returns an agent file that agents can be made of, in its current form. Raises InvalidArgument."""
    file = of_document(document)
    if update_tools:
        await import_tools(loci, file)
    for agent in file.agents:
        agent.messages, agent.in_context_message_ids = None, None
    return file.model_dump(mode="json", exclude_none=True)


def _answer(template: wire.Template) -> Response:
    return json_response(_rest(template))


def _rest(template: wire.Template) -> Rest:
    project = template.project_id if template.HasField("project_id") else _PROJECT
    version = str(template.latest_version)
    return {
        "id": template.id,
        "name": template.name,
        "project_id": project,
        "project_slug": project,
        "latest_version": version,
        "template_deployment_slug": f"{project}/{template.name}:{version}",
        "description": template.description if template.HasField("description") else None,
        "updated_at": moment(template.updated_at),
    }
