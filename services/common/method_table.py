"""The methods of a gRPC server, in one table."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import grpc

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class MethodTable(grpc.GenericRpcHandler):
    """Finds the handler of a call by its path; generated `add_XServicer_to_server` functions take it for a server.

    grpc.aio's own table of registered methods waits for each of them apart: with every call the event loop takes up
    and puts down as many waiters as the server has methods (grpcio 1.85.1; decision 44).
    """

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        """Adds the methods of a service; `handlers` by their bare names."""
        self._handlers.update((f"/{service}/{name}", handler) for name, handler in handlers.items())

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Does nothing: generated code gives the same handlers in both forms."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "Handler | None":
        """Returns the handler of a call, if there is one; gRPC answers UNIMPLEMENTED where there is none."""
        return self._handlers.get(handler_call_details.method)
