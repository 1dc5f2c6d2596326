"""TemplateService: parse, call, convert. The tenant and the user come from the verified call context."""

from dataclasses import replace
from typing import Any

import orjson

from loci.agent.v1 import template_service_pb2 as wire
from loci.agent.v1 import template_service_pb2_grpc
from services.agent.resources.templates import model as templates
from services.agent.resources.templates.model import Template, TemplateSettings, invalid
from services.agent.resources.templates.ports import TemplateStore
from services.common.codec import Codec
from services.common.context import current
from services.common.ids import from_public, uuid7
from services.common.page_requests import page_by_id

_PER_PAGE = 50
_templates = Codec(Template, wire.Template)
_drafts = Codec(TemplateSettings, wire.Template, refuse=invalid)


class TemplateServicer(template_service_pb2_grpc.TemplateServiceServicer):
    """loci.agent.v1.TemplateService."""

    def __init__(self, store: TemplateStore) -> None:
        self._store = store

    async def CreateTemplate(self, request: wire.CreateTemplateRequest, context: Any) -> wire.CreateTemplateResponse:
        """Creates a template with its first version."""
        caller = current()
        template_id = from_public("template", request.template_id) if request.template_id else uuid7()
        settings = _drafts.draft(request.template).values
        settings = replace(settings, name=templates.check_name(settings.name))
        file = templates.agent_file(request.agent_file_json)
        template = await self._store.create(caller.organization_id, caller.user_id, template_id, settings, file)
        return wire.CreateTemplateResponse(template=_templates.encode(template))

    async def GetTemplateVersion(
        self, request: wire.GetTemplateVersionRequest, context: Any
    ) -> wire.GetTemplateVersionResponse:
        """Returns one version."""
        version = request.version if request.HasField("version") else None
        template, number, file = await self._store.version(current().organization_id, request.name, version)
        return wire.GetTemplateVersionResponse(
            template=_templates.encode(template), version=number, agent_file_json=orjson.dumps(file).decode()
        )

    async def ListTemplates(self, request: wire.ListTemplatesRequest, context: Any) -> wire.ListTemplatesResponse:
        """Returns one page."""
        page = page_by_id(request.page, "template", _PER_PAGE)
        name = request.name if request.HasField("name") else None
        listed = await self._store.list(current().organization_id, name, page)
        return wire.ListTemplatesResponse(
            templates=map(_templates.encode, listed.items), next_page_token=listed.next_token
        )

    async def UpdateTemplate(self, request: wire.UpdateTemplateRequest, context: Any) -> wire.UpdateTemplateResponse:
        """Replaces the version that is worked on."""
        file = templates.agent_file(request.agent_file_json)
        caller = current()
        updated = await self._store.update(
            caller.organization_id, caller.user_id, request.name, file, save=request.save_existing
        )
        return wire.UpdateTemplateResponse(template=_templates.encode(updated))

    async def SaveTemplateVersion(
        self, request: wire.SaveTemplateVersionRequest, context: Any
    ) -> wire.SaveTemplateVersionResponse:
        """Saves the next version."""
        message = templates.check_message(request.message) if request.HasField("message") else None
        caller = current()
        saved = await self._store.save(caller.organization_id, caller.user_id, request.name, message)
        return wire.SaveTemplateVersionResponse(template=_templates.encode(saved))

    async def RollBackTemplate(
        self, request: wire.RollBackTemplateRequest, context: Any
    ) -> wire.RollBackTemplateResponse:
        """Works on a saved version again."""
        caller, version = current(), request.version if request.HasField("version") else None
        rolled = await self._store.roll_back(caller.organization_id, caller.user_id, request.name, version)
        return wire.RollBackTemplateResponse(template=_templates.encode(rolled))

    async def DeleteTemplate(self, request: wire.DeleteTemplateRequest, context: Any) -> wire.DeleteTemplateResponse:
        """Deletes a template; agents that were made of it stay."""
        await self._store.delete(current().organization_id, request.name)
        return wire.DeleteTemplateResponse()
