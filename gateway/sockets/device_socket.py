"""The WebSocket of a remote device: what waits for it goes out, what it has got comes back; docs/environments.md."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any

import orjson
from starlette.websockets import WebSocket, WebSocketDisconnect

from gateway.peers import Patience, stream
from gateway.resources.devices.responses import MODES
from gateway.rest.body import dump
from gateway.rest.json_body import parse
from gateway.rest.services import Services
from loci.agent.v1 import device_service_pb2
from services.common.errors import LociError, Unavailable

# A device says something every 30 s.
SILENCE_SECONDS = 90.0
# Two processes of one device drive each other out no faster than this.
_CALM_SECONDS = 1.0
_GOING_AWAY, _POLICY_VIOLATION, _TRY_AGAIN_LATER = 1001, 1008, 1013
# Bytes of a closing frame, by RFC 6455.
_LONGEST_REASON = 123
_UNKNOWN = frozenset({"DEVICE_NOT_FOUND", "INVALID_ID"})
# Of what a device says of itself, what is kept, and its name there.
_KEPT = {"current_working_directory": "workingDirectory", "letta_code_version": "lettaCodeVersion"}
_LONGEST_KEPT = 1_000


class DeviceSocket:
    """One connection. `acknowledges`: by ids; else whatever it says acknowledges all that it was sent before."""

    def __init__(self, socket: WebSocket, loci: Services, connection_id: str, *, acknowledges: bool) -> None:
        self._socket = socket
        self._loci = loci
        self._connection_id = connection_id
        self._acknowledges = acknowledges
        # Of messages that were sent and are not acknowledged.
        self._sent: set[str] = set()
        self._online, self._accepted = asyncio.Event(), asyncio.Event()
        # What it said of itself last: mode and metadata.
        self._noted = ("", "")

    async def serve(self) -> None:
        """Serves the device until either side ends it."""
        push, online = asyncio.create_task(self._push()), asyncio.create_task(self._online.wait())
        read = asyncio.create_task(self._read())
        try:
            # Whoever is let in can be sent something. Closing says more than a refusal, so all are let in.
            await asyncio.wait((push, online), return_when=asyncio.FIRST_COMPLETED)
            with suppress(WebSocketDisconnect, RuntimeError):
                await self._socket.accept()
                self._accepted.set()
                await asyncio.wait((push, read), return_when=asyncio.FIRST_COMPLETED)
                ended = read if read.done() else push
                if (close := ended.result()) is not None:
                    await self._socket.close(*close)
        finally:
            for task in (push, read, online):
                task.cancel()
            await asyncio.gather(push, read, online, return_exceptions=True)

    async def _push(self) -> tuple[int, str] | None:
        """Returns code and reason for closing the socket; None: it is closed."""
        try:
            async with aclosing(self._messages()) as messages:
                async for message in messages:
                    await self._accepted.wait()
                    if message.id in self._sent:
                        # It came again, from another replica.
                        continue
                    frame = {"id": message.id, **orjson.loads(message.body_json)}
                    async with asyncio.timeout(self._loci.settings.socket_stall):
                        await self._say(frame)
                    self._sent.add(message.id)
        except LociError as error:
            if error.reason == "DEVICE_REPLACED":
                await asyncio.sleep(_CALM_SECONDS)
            code = _POLICY_VIOLATION if error.reason in {*_UNKNOWN, "DEVICE_REPLACED"} else _TRY_AGAIN_LATER
            return code, error.message.encode()[:_LONGEST_REASON].decode(errors="ignore")
        except TimeoutError:
            return _TRY_AGAIN_LATER, "you read too slowly; connect again"
        except (WebSocketDisconnect, RuntimeError):
            return None
        raise AssertionError("messages end with an error alone")

    async def _messages(self) -> AsyncGenerator[device_service_pb2.DeviceMessage]:
        """Yields what waits for the device, over as many replicas of the agent service as it takes.

        Raises LociError.
        """
        patience = Patience(self._loci.settings.reattach_window)
        while True:
            call = self._loci.peers.devices.StreamDeviceMessages(
                device_service_pb2.StreamDeviceMessagesRequest(connection_id=self._connection_id), wait_for_ready=True
            )
            try:
                async with stream(call) as events:
                    async for event in events:
                        patience.renew()
                        self._online.set()
                        if event.HasField("message"):
                            yield event.message
                failure: LociError = Unavailable("the stream ended", reason="STREAM_INCOMPLETE")
            except LociError as error:
                failure = error
            await patience.wait(failure)

    async def _read(self) -> tuple[int, str] | None:
        """Returns code and reason for closing the socket; None: the device has left."""
        await self._accepted.wait()
        with suppress(WebSocketDisconnect, RuntimeError):
            while True:
                try:
                    async with asyncio.timeout(SILENCE_SECONDS):
                        received = await self._socket.receive()
                except TimeoutError:
                    return _GOING_AWAY, f"nothing was heard for {SILENCE_SECONDS:g} s"
                if received["type"] != "websocket.receive":
                    return None
                text = received.get("text")
                try:
                    await self._take(received.get("bytes") or b"" if text is None else text.encode())
                except LociError as error:
                    # What it says of itself or has got is of a connection that ends, or it was said wrongly.
                    await self._say({"type": "error", "message": error.message})
        return None

    async def _take(self, data: bytes) -> None:
        try:
            frame = parse(data)
        except json.JSONDecodeError as error:
            await self._say({"type": "error", "message": f"the frame is not JSON that is taken here: {error.msg}"})
            return
        if not isinstance(frame, dict):
            await self._say({"type": "error", "message": "a frame must be a JSON object"})
            return
        if not self._acknowledges:
            await self._acknowledge(self._sent)
        match frame:
            case {"type": "ping"}:
                await self._say({"type": "pong"})
            case {"type": "ack", "id": str(message_id)}:
                await self._acknowledge({message_id})
            case {"type": "update_device_status", "device_status": dict(status)}:
                await self._note(status)
            case _:
                # What agents do there is told to those who look on; here nobody does.
                return

    async def _acknowledge(self, message_ids: set[str]) -> None:
        got = sorted(message_ids)
        if got:
            request = device_service_pb2.AcknowledgeDeviceMessagesRequest(
                connection_id=self._connection_id, message_ids=got
            )
            await self._loci.peers.call(self._loci.peers.devices.AcknowledgeDeviceMessages, request)
            self._sent.difference_update(got)

    async def _note(self, status: dict[str, Any]) -> None:
        """Keeps what a device says of itself, where that is something new."""
        metadata = {
            name: value[:_LONGEST_KEPT]
            for status_now, name in _KEPT.items()
            if isinstance(value := status.get(status_now), str)
        }
        match status.get("git_context"):
            case {"branch": str(branch)}:
                metadata["gitBranch"] = branch[:_LONGEST_KEPT]
        mode = status.get("current_permission_mode")
        status_now = (mode if isinstance(mode, str) and mode in MODES else "", dump(metadata))
        if status_now != self._noted:
            request = device_service_pb2.UpdateDeviceRequest(
                connection_id=self._connection_id, current_mode=status_now[0], metadata_json=status_now[1]
            )
            await self._loci.peers.call(self._loci.peers.devices.UpdateDevice, request)
            self._noted = status_now

    async def _say(self, frame: dict[str, Any]) -> None:
        await self._socket.send_text(orjson.dumps(frame).decode())
