"""What each role may ask of this service from outside, by what an RPC does. Pure.

The gateway has a table of its own for routes.
"""

from collections.abc import Mapping

READ, TALK, WRITE, OWN = "read", "talk", "write", "own"
_MAY: Mapping[str, frozenset[str]] = {
    "admin": frozenset({READ, TALK, WRITE, OWN}),
    "developer": frozenset({READ, TALK, WRITE}),
    "agent-only": frozenset({READ, TALK}),
    "read-only": frozenset({READ}),
}
_TALKING = frozenset({"SendMessages", "StreamMessages", "StartMessages", "CancelRuns", "CreateConversation"})
_READING = ("Get", "List", "Search", "StreamRun")
_TOKENS = frozenset({"CreateClientToken", "ListClientTokens", "DeleteClientToken"})


def right_of(method: str) -> str:
    """What an RPC needs; `method` as gRPC writes it: "/loci.agent.v1.AgentService/GetAgent".

    What is not known to be less is WRITE: a new RPC is closed to the lesser roles.
    """
    service, _, name = method.rpartition("/")
    if service.endswith(".AccessService"):
        return WRITE if name in _TOKENS else OWN
    if name in _TALKING:
        return TALK
    return READ if name.startswith(_READING) else WRITE


def may(role: str, method: str) -> bool:
    """Whether a role may call an RPC. Roles that are not in the table may call none."""
    return right_of(method) in _MAY.get(role, frozenset())
