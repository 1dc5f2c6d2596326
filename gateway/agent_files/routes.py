"""Agent files: agents moved in and out, with what was said."""

import asyncio
from typing import Annotated

import orjson
from fastapi import APIRouter, Query
from pydantic import Field, ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from gateway.agent_files.checks import invalid_file
from gateway.agent_files.drafts import Options
from gateway.agent_files.exporter import ExportOptions, export
from gateway.agent_files.importer import import_file
from gateway.agent_files.reader import read
from gateway.agent_files.schemas import AGENT_FILE, IMPORTED
from gateway.errors.invalid import InvalidRequest
from gateway.openapi.answers import returns
from gateway.resources.agents.requests import Handle
from gateway.rest.body import Body, Json, deprecated
from gateway.rest.params import AgentId, checked_id
from gateway.rest.responses import json_response
from gateway.rest.services import Loci

router = APIRouter(prefix="/agents", tags=["agents"])

_LEGACY = "The legacy form is not written any more; leave use_legacy_format out."
# Fields beside the file are short.
_FIELD_BYTES = 1024 * 1024
_MOST_SKILLS = 100


class ImportForm(Body):
    """The fields beside `file`. Older names count where today's are not sent."""

    name: str | None = None
    override_name: str | None = deprecated()
    append_copy_suffix: bool = deprecated(True)
    override_existing_tools: bool = True
    strip_messages: bool = False
    secrets: str | None = Field(None, repr=False)
    env_vars_json: str | None = deprecated()
    model: Handle | None = None
    override_model_handle: Handle | None = deprecated()
    embedding: Handle | None = None
    override_embedding_handle: Handle | None = deprecated()
    project_id: str | None = deprecated()


class ExportBody(Body):
    """Body of the export that takes skills along."""

    skills: list[Json] | None = None
    conversation_id: Annotated[str, checked_id("conv")] | None = None
    scrub_messages: bool = False


_FORM_SCHEMA = ImportForm.model_json_schema()
_IMPORT_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}, **_FORM_SCHEMA["properties"]},
                }
            }
        },
    }
}


@router.post("/import", openapi_extra=_IMPORT_BODY)
@returns(IMPORTED)
async def import_agents(request: Request, loci: Loci) -> Response:
    """Makes the agents of an agent file, in whichever of its forms; all of them or, with a 400, none.

    `warnings` is Loci's own: what could not be taken along.
    """
    data, form = await _sent(request)
    options = _options(request, form)
    file = await asyncio.to_thread(read, data)
    done = await import_file(loci, file, options)
    answer: Json = {"agent_ids": done.agent_ids}
    if done.warnings:
        answer["warnings"] = done.warnings
    return json_response(answer)


@router.get("/{agent_id}/export")
@returns(AGENT_FILE)
async def export_agent(
    agent_id: AgentId,
    loci: Loci,
    conversation_id: Annotated[Annotated[str, checked_id("conv")] | None, Query()] = None,
    scrub_messages: bool = False,
    use_legacy_format: bool = Query(False, deprecated=True),
    max_steps: int | None = Query(None, deprecated=True),
) -> Response:
    """The agent as an agent file, with the messages of its window."""
    if use_legacy_format:
        raise invalid_file(_LEGACY)
    return _document(await export(loci, agent_id, ExportOptions(conversation_id, scrub_messages)))


@router.post("/{agent_id}/export")
@returns(AGENT_FILE)
async def export_agent_with_skills(agent_id: AgentId, loci: Loci, body: ExportBody | None = None) -> Response:
    """The same, with skills in it."""
    body = body or ExportBody()
    skills = [_skill(each, place) for place, each in enumerate(body.skills or ())]
    if len(skills) > _MOST_SKILLS:
        raise InvalidRequest(f"`skills` has {len(skills)} entries; at most {_MOST_SKILLS} go along", "body", "skills")
    return _document(await export(loci, agent_id, ExportOptions(body.conversation_id, body.scrub_messages, skills)))


def _document(document: Json) -> Response:
    return Response(orjson.dumps(document, option=orjson.OPT_INDENT_2), media_type="application/json")


def _skill(skill: Json, place: int) -> Json:
    name, files, source = skill.get("name"), skill.get("files"), skill.get("source_url")
    if not isinstance(name, str) or not name:
        raise InvalidRequest("a skill has a name", "body", "skills", str(place), "name")
    if files is None and not isinstance(source, str):
        raise InvalidRequest("a skill has files or a source_url", "body", "skills", str(place))
    if files is not None and (not isinstance(files, dict) or "SKILL.md" not in files):
        raise InvalidRequest("the files of a skill hold SKILL.md", "body", "skills", str(place), "files")
    return {"name": name, "files": files, "source_url": source}


async def _sent(request: Request) -> tuple[bytes, ImportForm]:
    """Returns the file and the fields beside it. Raises InvalidRequest."""
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise InvalidRequest("send the file as multipart/form-data, in a part named `file`", "header", "content-type")
    try:
        async with request.form(max_files=1, max_fields=50, max_part_size=_FIELD_BYTES) as sent:
            part = sent.get("file")
            if part is None:
                raise InvalidRequest("`file`: the body has no such part", "body", "file")
            data = await part.read() if isinstance(part, UploadFile) else part.encode()
            fields = {name: value for name, value in sent.items() if isinstance(value, str) and value != ""}
    except HTTPException as error:
        raise InvalidRequest(f"the body is not multipart/form-data: {error.detail}", "body") from None
    try:
        return data, ImportForm.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise InvalidRequest(first["msg"], "body", *map(str, first["loc"])) from None


def _options(request: Request, form: ImportForm) -> Options:
    header = request.headers.get("x-override-embedding-model")
    secrets = form.secrets if form.secrets is not None else form.env_vars_json
    return Options(
        name=form.name or form.override_name,
        append_copy_suffix=form.append_copy_suffix,
        override_existing_tools=form.override_existing_tools,
        strip_messages=form.strip_messages,
        secrets=_secrets(secrets),
        model=form.model or form.override_model_handle,
        embedding=form.embedding or form.override_embedding_handle or header,
        project_id=request.headers.get("x-project") or form.project_id,
    )


def _secrets(text: str | None) -> dict[str, str]:
    if text is None:
        return {}
    try:
        value = orjson.loads(text)
    except ValueError:
        raise invalid_file("secrets must be a JSON object") from None
    if not isinstance(value, dict):
        raise invalid_file("secrets must be a JSON object")
    return {name: each if isinstance(each, str) else orjson.dumps(each).decode() for name, each in value.items()}
