"""Remote devices (environments in REST) that run agents' work, and what is pushed to them. See docs/environments.md."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from gateway.openapi.answers import returns
from gateway.resources.devices.requests import RegisterDevice, SendToDevice
from gateway.resources.devices.responses import device
from gateway.resources.devices.schemas import ENVIRONMENT, ENVIRONMENTS, REGISTERED, SENT
from gateway.rest.body import dump
from gateway.rest.paging import FIRST_PAGE, paged
from gateway.rest.params import checked_id
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from gateway.sockets.device_socket import DeviceSocket
from loci.agent.v1 import device_service_pb2
from loci.common.v1.page_pb2 import PageRequest
from services.common.errors import InvalidArgument, NotFound
from services.common.ids import from_public, to_public, uuid7

router = APIRouter(prefix="/environments", tags=["environments"])

_SOURCES = {
    "local": device_service_pb2.DEVICE_SOURCE_LOCAL,
    "remote": device_service_pb2.DEVICE_SOURCE_REMOTE,
}
_PER_PAGE = 50


@router.post("/register")
@returns(REGISTERED)
async def register(body: RegisterDevice, request: Request, loci: Loci) -> Response:
    """Makes a device known, for a new connection. It connects to `wsUrl` next, a WebSocket; Loci's own."""
    rpc_request = device_service_pb2.RegisterDeviceRequest(
        device_id=body.device_id,
        name=body.connection_name or "",
        source=_SOURCES[body.source],
        metadata_json=dump(body.metadata or {}),
        connection_id=to_public("connection", uuid7()),
    )
    created = (await loci.peers.call(loci.peers.devices.RegisterDevice, rpc_request)).device
    url = f"{_origin(request, loci)}/v1/environments/{created.connection_id}/ws"
    return json_response({"connectionId": created.connection_id, "wsUrl": url, "supportsSplitStatusChannels": False})


@router.get("")
@router.get("/", include_in_schema=False)
@returns(ENVIRONMENTS)
@paged(
    _PER_PAGE,
    names="after limit",
    cursor=Annotated[str | None, Query(), checked_id("device")],
    empty={"connections": [], "hasNextPage": False},
)
async def list_environments(
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
    online_only: Annotated[bool, Query(alias="onlineOnly")] = False,
    source: Literal["local", "remote"] | None = None,
    user_id: Annotated[str | None, Query(alias="userId")] = None,
) -> Response:
    """Devices that have registered, the newest first."""
    request = device_service_pb2.ListDevicesRequest(
        page=page,
        online_only=online_only,
        source=_SOURCES[source] if source else device_service_pb2.DEVICE_SOURCE_UNSPECIFIED,
        user_id=user_id or "",
    )
    response = await loci.peers.call(loci.peers.devices.ListDevices, request)
    more = bool(response.next_page_token)
    return json_response({"connections": list(map(device, response.devices)), "hasNextPage": more})


@router.get("/{device_id}")
@returns(ENVIRONMENT)
async def get_environment(device_id: str, loci: Loci) -> Response:
    """Returns a device, by its own name."""
    request = device_service_pb2.GetDeviceRequest(device_id=device_id)
    return json_response(device((await loci.peers.call(loci.peers.devices.GetDevice, request)).device))


@router.post("/{connection_id}/messages")
@returns(SENT)
async def send_to_environment(connection_id: str, body: SendToDevice, loci: Loci) -> Response:
    """Pushes messages to a device that is connected. They are stored until it has got them."""
    request = device_service_pb2.SendDeviceMessagesRequest(
        connection_id=_known(connection_id),
        messages=[
            device_service_pb2.OutgoingDeviceMessage(id=to_public("message", uuid7()), body_json=dump(frame))
            for frame in body.frames()
        ],
    )
    await loci.peers.call(loci.peers.devices.SendDeviceMessages, request)
    return json_response({"success": True, "message": "The message was sent to the environment."})


@router.websocket("/{connection_id}/ws")
async def connect(socket: WebSocket, connection_id: str, acknowledge: bool = False) -> None:
    """Connects a device. With acknowledge=true it acknowledges each message by its id."""
    loci: Services = socket.app.state.services
    await DeviceSocket(socket, loci, connection_id, acknowledges=acknowledge).serve()


def _known(connection_id: str) -> str:
    """Raises NotFound (DEVICE_NOT_FOUND) for what is no connection's id at all."""
    try:
        from_public("connection", connection_id)
    except InvalidArgument:
        sentence = f"No device has the connection {connection_id[:80]!r}; register it"
        raise NotFound(sentence, reason="DEVICE_NOT_FOUND") from None
    return connection_id


def _origin(request: HTTPConnection, loci: Services) -> str:
    """Returns the origin of our sockets: as the operator says, else as the request came."""
    base = loci.settings.public_url or str(request.base_url).rstrip("/")
    return f"ws{base.removeprefix('http')}"
