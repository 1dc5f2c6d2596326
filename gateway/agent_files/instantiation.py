"""Agents made of a template: its file, filled in and imported."""

from typing import NamedTuple

from gateway.agent_files.drafts import Options
from gateway.agent_files.importer import import_file
from gateway.agent_files.reader import of_document
from gateway.agent_files.templates import TemplateValues, fill_template
from gateway.rest.convert import from_json
from gateway.rest.services import Services
from loci.agent.v1 import template_service_pb2 as wire
from services.common.ids import to_public, uuid7


class CreatedAgents(NamedTuple):
    """Ids of what came of a template. Agents in its order."""

    agent_ids: list[str]
    group_ids: list[str]
    deployment_id: str


async def make_agents(loci: Services, name: str, version: int | None, filling: TemplateValues) -> CreatedAgents:
    """Returns all agents of a version, see `named_version`, or none. Raises LociError."""
    request = wire.GetTemplateVersionRequest(name=name, version=version)
    response = await loci.peers.call(loci.peers.templates.GetTemplateVersion, request)
    file = fill_template(of_document(from_json(response.agent_file_json)), filling)
    deployment_id = to_public("deployment", uuid7())
    options = Options(
        append_copy_suffix=False,
        override_existing_tools=False,
        secrets=filling.secrets,
        model=filling.model,
        embedding=filling.embedding,
        project_id=filling.project_id,
        tags=filling.tags,
        identity_ids=filling.identity_ids,
        template_id=f"{response.template.id}:{response.version}",
        base_template_id=response.template.id,
        deployment_id=deployment_id,
    )
    done = await import_file(loci, file, options)
    return CreatedAgents(done.agent_ids, done.group_ids, deployment_id)
