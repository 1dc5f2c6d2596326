"""Protobuf to REST. One generic rule, `to_rest`, and the objects that differ from it.

The rule: field names stay; a `*_json` text becomes the JSON in it, under the name without `_json`; an enum becomes its
value's name in lower case without the prefix, UNSPECIFIED null; a timestamp becomes ISO 8601 with offset; what is
unset and knows it is null, and so is an empty id.
"""

import base64
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import orjson
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from loci.agent.v1 import message_service_pb2, run_pb2
from loci.common.v1 import field_pb2
from loci.memory.v1 import block_pb2, folder_pb2, passage_pb2
from loci.tool.v1 import tool_pb2
from services.common.fields import Field, fields_of
from services.common.fields import enum_names as enum_names
from services.common.fields import enum_numbers as enum_numbers

Rest = dict[str, Any]
_EMPTY_JSON = {
    field_pb2.JSON_KIND_UNSPECIFIED: "",
    field_pb2.JSON_KIND_OBJECT: "{}",
    field_pb2.JSON_KIND_ARRAY: "[]",
    field_pb2.JSON_KIND_OPTIONAL_OBJECT: "",
}
_Read = Callable[[Any], Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_rest(message: Message, *, leave: frozenset[str] = frozenset()) -> Rest:
    """`message` by the generic rule, without the fields named in `leave`."""
    return {name: read(message) for name, read in _plan(message.DESCRIPTOR) if name not in leave}


@cache
def _plan(descriptor: Descriptor) -> Sequence[tuple[str, _Read]]:
    return [(each.rest_name, _read(each)) for each in fields_of(descriptor).values() if not each.rule.hidden]


def _read(field: Field) -> _Read:
    name = field.wire
    if field.is_map:
        return lambda message: dict(getattr(message, name))
    if field.is_json:
        empty = _EMPTY_JSON[field.rule.json]
        return lambda message: from_json(getattr(message, name) or empty)
    convert = _scalar(field.descriptor) or _as_it_is
    if field.descriptor.is_repeated:
        return lambda message: [convert(value) for value in getattr(message, name)]
    if field.descriptor.has_presence:
        return lambda message: convert(getattr(message, name)) if message.HasField(name) else None
    if name.endswith("_id"):
        return lambda message: getattr(message, name) or None
    return lambda message: convert(getattr(message, name))


def _as_it_is(value: Any) -> Any:
    return value


def _scalar(field: FieldDescriptor) -> _Read | None:
    """How one value of `field` is converted; None: not at all."""
    if field.enum_type is not None:
        names = enum_names(field.enum_type)
        return lambda number: names.get(number, str(number))
    if field.type == FieldDescriptor.TYPE_BYTES:
        return lambda value: base64.b64encode(value).decode()
    if field.message_type is None:
        return None
    match field.message_type.full_name:
        case "google.protobuf.Timestamp":
            return moment
        case "google.protobuf.Duration":
            return lambda value: value.ToNanoseconds() / 1e9
        case _:
            return to_rest


def from_json(text: str) -> Any:
    """The JSON in a `*_json` field; None when it is empty."""
    return orjson.loads(text) if text else None


def moment(timestamp: Any) -> str:
    """A Timestamp in UTC: 2026-01-31T09:30:00.123456+00:00."""
    # Twice as fast as its own ToDatetime, and lists are full of times.
    return (_EPOCH + timedelta(seconds=timestamp.seconds, microseconds=timestamp.nanos // 1000)).isoformat()


def whole_second(timestamp: Any) -> str:
    """A Timestamp without its fraction, as messages show it."""
    text: str = timestamp.ToDatetime(tzinfo=UTC).isoformat(timespec="seconds")
    return text


# Of a folder that is searched by words alone.
_NO_EMBEDDING: Rest = {
    "handle": None,
    "embedding_model": "none",
    "embedding_endpoint_type": "none",
    "embedding_endpoint": None,
    "embedding_dim": 0,
    "embedding_chunk_size": 300,
    "batch_size": 32,
}
_NOT_IN_BLOCKS = frozenset({"created_at", "updated_at", "version"})
# The reference's fields that Loci has no use for are there and null.
_NOT_IN_TOOLS = frozenset(
    ("created_at", "updated_at", "version", "idempotent", "network", "takes_agent_state", "mcp_server_id")
)
_NOT_IN_RUNS = frozenset({"started_at", "fence", "view"})
_STEP_NULLS = dict.fromkeys(("model_endpoint", "origin", "provider_id", "request_id"))


def block(message: block_pb2.Block) -> Rest:
    """The reference's Block: 19 fields."""
    rest = to_rest(message, leave=_NOT_IN_BLOCKS)
    rest["metadata"] = rest["metadata"] or {}
    return rest


def block_version(message: block_pb2.BlockVersion) -> Rest:
    """A version of a block: Loci's own."""
    rest = to_rest(message)
    return rest | {
        "metadata": rest["metadata"] or {},
        "call_key": message.call_key or None,
        "restored_version": message.restored_version or None,
    }


def tool(message: tool_pb2.Tool) -> Rest:
    """The reference's Tool: 18 fields."""
    rest = to_rest(message)
    rest["metadata_"] = rest.pop("metadata") or {}
    rest["source_code"] = rest["source_code"] or None
    for name in _NOT_IN_TOOLS:
        del rest[name]
    return rest


def catalogued(message: tool_pb2.Tool) -> Rest:
    """The reference's Tool, with what Loci's own settings are."""
    network = from_json(message.network_json)
    return tool(message) | {"network": network or {}, "idempotent": message.idempotent}


def tool_hit(message: tool_pb2.ToolHit) -> Rest:
    """The reference's ToolSearchResult."""
    return {
        "tool": catalogued(message.tool),
        "embedded_text": message.embedded_text or None,
        "fts_rank": message.text_rank if message.HasField("text_rank") else None,
        "vector_rank": message.vector_rank if message.HasField("vector_rank") else None,
        "combined_score": message.score,
    }


def run(message: run_pb2.Run) -> Rest:
    """The reference's Run: 17 fields."""
    rest = to_rest(message, leave=_NOT_IN_RUNS)
    for name in ("callback_url", "callback_error"):
        rest[name] = rest[name] or None
    return rest | {"base_template_id": None, "request_config": _request_config(view_of(message.view_json))}


def view_of(text: str) -> Rest:
    """How a run's request wanted to see it; empty where it did not say, or said it in the words of another caller."""
    try:
        view = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return {}
    return view if isinstance(view, dict) else {}


def _request_config(view: Rest) -> Rest | None:
    """What the reference tells of it; null for a request that asked for nothing of its own."""
    match view:
        case {"types": types, "spoken": [tool, argument]}:
            spoken = (True, tool, argument)
        case {"types": types, "spoken": None}:
            spoken = (False, None, None)
        case _:
            return None
    names = ("use_assistant_message", "assistant_message_tool_name", "assistant_message_tool_kwarg")
    return dict(zip(names, spoken, strict=True)) | {"include_return_message_types": types}


def step(message: run_pb2.Step) -> Rest:
    """The reference's Step: 30 fields, `messages` always empty (it is deprecated there)."""
    rest = to_rest(message) | _STEP_NULLS
    provider, _, model = message.model_handle.partition("/")
    usage = {"prompt_tokens": message.prompt_tokens, "completion_tokens": message.completion_tokens}
    rest |= {
        "model": model or message.model_handle,
        "provider_name": provider,
        "provider_category": "base",
        "total_tokens": sum(usage.values()),
        "error_type": message.error_type or None,
        "error_data": _error_data(message),
        "messages": [],
    } | _token_details(rest)
    for name in ("number", "attempts", "error_message", "error_detail", "prompt_hash", "created_at"):
        del rest[name]
    return rest


def _error_data(message: run_pb2.Step) -> Rest | None:
    said = {"message": message.error_message, "detail": message.error_detail}
    return {name: text for name, text in said.items() if text} or None


def passage(message: passage_pb2.Passage, embedding_config: Rest | None, organization_id: str) -> Rest:
    """The reference's Passage: 16 fields. `embedding`, the vector, is never served."""
    rest = to_rest(message, leave=frozenset({"file"}))
    return rest | {
        "metadata": rest["metadata"] or {},
        "source_id": message.file.folder_id or None,
        "file_id": message.file.file_id or None,
        "file_name": message.file.file_name or None,
        "embedding": None,
        "embedding_config": embedding_config,
        "organization_id": organization_id,
        "is_deleted": False,
    }


def archive(message: passage_pb2.Archive, embedding_config: Rest | None, organization_id: str) -> Rest:
    """The reference's Archive: 11 fields."""
    rest = to_rest(message, leave=frozenset({"embedding", "dimensions", "passage_count"}))
    return rest | {
        "metadata": rest["metadata"] or {},
        "embedding_config": embedding_config,
        "vector_db_provider": "native",
        "organization_id": organization_id,
    }


def folder(message: folder_pb2.Folder, embedding_config: Rest | None, organization_id: str) -> Rest:
    """The reference's Folder: 12 fields. `embedding_config` is there without a model, too: clients rely on that."""
    rest = to_rest(message, leave=frozenset({"embedding", "file_count"}))
    return rest | {
        "metadata": rest["metadata"] or {},
        "embedding_config": embedding_config or _NO_EMBEDDING,
        "vector_db_provider": "native",
        "organization_id": organization_id,
    }


def file(message: folder_pb2.File, organization_id: str) -> Rest:
    """The reference's FileMetadata: 19 fields, with `folder_id`, `line_count` and `char_count` besides."""
    rest = to_rest(message, leave=frozenset({"name", "original_name", "media_type", "size", "status", "error"}))
    return rest | {
        "source_id": message.folder_id,
        "organization_id": organization_id,
        "file_name": message.name,
        "original_file_name": message.original_name,
        "file_path": None,
        "file_type": message.media_type,
        "file_size": message.size,
        "file_creation_date": None,
        "file_last_modified_date": None,
        "processing_status": enum_names(folder_pb2.FileStatus.DESCRIPTOR).get(message.status),
        "error_message": message.error or None,
        "is_deleted": False,
    }


def run_usage(message: message_service_pb2.TurnUsage) -> Rest:
    """Tokens of a run, as its usage route tells them."""
    names = ("completion_tokens", "prompt_tokens", "total_tokens")
    rest = to_rest(message)
    return {name: rest[name] for name in names} | _token_details(rest)


def _token_details(rest: Rest) -> Rest:
    """The nested breakdowns; null where the provider says nothing."""
    reasoning, cached = rest["reasoning_tokens"], rest["cached_input_tokens"]
    written = rest["cache_write_tokens"]
    prompt = {"cached_tokens": cached, "cache_read_tokens": cached, "cache_creation_tokens": written}
    return {
        "completion_tokens_details": None if reasoning is None else {"reasoning_tokens": reasoning},
        "prompt_tokens_details": None if cached is None and written is None else prompt,
    }
