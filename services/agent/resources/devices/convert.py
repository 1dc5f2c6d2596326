"""Devices <-> protobuf."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import orjson

from loci.agent.v1 import device_service_pb2 as wire
from services.agent.resources.devices.ports import Device, DeviceList, DeviceMessage, Registration, Source
from services.common.codec import Codec
from services.common.context import CallContext
from services.common.core.storable import parse_storable, storable
from services.common.errors import InvalidArgument
from services.common.ids import from_public, optional_id, to_public, uuid7
from services.common.page_requests import page_by_id
from services.common.timestamps import timestamp

LONGEST_NAME = 256
LONGEST_METADATA = 16_384
LONGEST_MODE = 64
LONGEST_BODY = 1_048_576
# Of one request.
_PER_PAGE = 50
MOST_MESSAGES, MOST_ACKNOWLEDGED = 100, 1_000

_SOURCES: Mapping[int, Source] = {wire.DEVICE_SOURCE_LOCAL: "local", wire.DEVICE_SOURCE_REMOTE: "remote"}
_devices = Codec(Device, wire.Device)


def registration(request: wire.RegisterDeviceRequest, context: CallContext) -> Registration:
    """Returns the registration of a device. Raises InvalidArgument."""
    device_id = _text("device_id", request.device_id)
    return Registration(
        organization_id=context.organization_id,
        user_id=context.user_id,
        device_id=device_id,
        name=_text("name", request.name) if request.name else device_id,
        source=_SOURCES.get(request.source, "remote"),
        metadata=_object("metadata", request.metadata_json, LONGEST_METADATA),
        connection_id=from_public("connection", request.connection_id) if request.connection_id else uuid7(),
    )


def changes(request: wire.UpdateDeviceRequest) -> tuple[str | None, Mapping[str, Any]]:
    """Returns mode and metadata to set. Raises InvalidArgument."""
    mode = None
    if request.HasField("current_mode"):
        mode = storable(request.current_mode)
        _check(len(mode) <= LONGEST_MODE, f"current_mode has {len(mode)} characters; at most {LONGEST_MODE}")
    return mode, _object("metadata", request.metadata_json, LONGEST_METADATA)


def device_list(request: wire.ListDevicesRequest) -> DeviceList:
    """Returns the page and the filters of a list. Raises InvalidArgument (INVALID_ID), Refused."""
    return DeviceList(
        page=page_by_id(request.page, "device", _PER_PAGE),
        online_only=request.online_only,
        source=_SOURCES.get(request.source),
        user_id=optional_id("user", request.user_id),
    )


def outgoing(request: wire.SendDeviceMessagesRequest) -> Mapping[UUID, Mapping[str, Any]]:
    """Returns bodies by their ids. Raises InvalidArgument."""
    count = len(request.messages)
    _check(1 <= count <= MOST_MESSAGES, f"messages must hold 1 to {MOST_MESSAGES} messages, not {count}")
    return {
        from_public("message", each.id) if each.id else uuid7(): _object("a message", each.body_json, LONGEST_BODY)
        for each in request.messages
    }


def acknowledged_ids(request: wire.AcknowledgeDeviceMessagesRequest) -> list[UUID]:
    """Returns the ids of the messages that the device has received. Raises InvalidArgument."""
    count = len(request.message_ids)
    _check(count <= MOST_ACKNOWLEDGED, f"message_ids has {count} ids; at most {MOST_ACKNOWLEDGED}")
    return [from_public("message", each) for each in request.message_ids]


def device_to_proto(device: Device) -> wire.Device:
    """Returns a device as clients see it."""
    return _devices.encode(device if device.online else replace(device, connected_at=None))


def device_message_to_proto(message: DeviceMessage) -> wire.DeviceMessage:
    """Returns a message as its device sees it."""
    body = orjson.dumps(message.body).decode()
    created_at = timestamp(message.created_at)
    return wire.DeviceMessage(id=to_public("message", message.id), body_json=body, created_at=created_at)


def _text(name: str, text: str) -> str:
    kept = storable(text).strip()
    _check(1 <= len(kept) <= LONGEST_NAME, f"{name} must have 1 to {LONGEST_NAME} characters, not {len(kept)}")
    return kept


def _object(name: str, text: str, longest: int) -> Mapping[str, Any]:
    _check(len(text) <= longest, f"{name} has {len(text)} characters; at most {longest}")
    try:
        value = parse_storable(text or "{}")
    except ValueError as error:
        raise InvalidArgument(f"{name} is not JSON: {error}", reason="DEVICE_INVALID") from None
    _check(isinstance(value, dict), f"{name} must be a JSON object")
    members: Mapping[str, Any] = value
    return members


def _check(holds: bool, sentence: str) -> None:
    if not holds:
        raise InvalidArgument(sentence, reason="DEVICE_INVALID")
