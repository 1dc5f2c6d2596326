"""What a tool may ask of Loci with the token of its run."""

import base64
import time
from dataclasses import replace
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.access.auth import AUDIENCE, Authenticator
from gateway.access.run_tokens import check_approvals, check_members
from gateway.resources.messages.requests import SendMessages
from services.common.context import RUN_TOKEN_PREFIX, CallContext, Signer, Verifier, use_context
from services.common.errors import LociError, PermissionDenied, Unauthenticated

KEY = Ed25519PrivateKey.generate()
SIGNER = Signer(KEY, "k")
RUN = CallContext(
    organization_id=UUID(int=1),
    user_id=UUID(int=2),
    role="run",
    audience=("gateway",),
    run_id=UUID(int=3),
    ancestors=(UUID(int=4),),
    deadline=2_000_000_000.5,
)
# With a password, which the token stands in for.
AUTHENTICATOR = Authenticator("secret", Verifier({"k": KEY.public_key()}))


def shown(context: CallContext, signer: Signer = SIGNER) -> dict[bytes, bytes]:
    text = RUN_TOKEN_PREFIX + base64.urlsafe_b64encode(signer.sign(context)).rstrip(b"=").decode()
    return {b"authorization": f"Bearer {text}".encode(), b"user_id": b"user-11111111-1111-4111-8111-111111111111"}


async def test_it_acts_for_its_tenant_within_its_run() -> None:
    caller = await AUTHENTICATOR.caller("GET", "/v1/agents", shown(RUN))
    assert caller.context == replace(RUN, audience=AUDIENCE)
    # Signed afresh for the services: the gateway's own token is worth nothing there.
    assert (caller.context.token, caller.context.expires_at) == (b"", 0.0)


async def test_a_call_made_again_is_the_same_caller() -> None:
    later = replace(RUN, deadline=2_000_000_001.0)
    first, second = [await AUTHENTICATOR.caller("GET", "/v1/agents", shown(context)) for context in (RUN, later)]
    assert first.credential == second.credential != b"secret"


@pytest.mark.parametrize(
    "headers",
    [
        shown(replace(RUN, role="admin")),
        shown(replace(RUN, audience=("agent", "memory"))),
        shown(RUN, Signer(Ed25519PrivateKey.generate(), "k")),
        {b"authorization": b"Bearer loci-run-"},
        {b"authorization": b"Bearer loci-run-\xff\xff"},
        {b"authorization": b"bearer loci-run-AAAA", b"x-bare-password": b"password secret"},
    ],
)
async def test_tokens_that_open_nothing(headers: dict[bytes, bytes]) -> None:
    with pytest.raises(Unauthenticated) as caught:
        await AUTHENTICATOR.caller("GET", "/v1/agents", headers)
    assert caught.value.reason == "RUN_TOKEN_INVALID"


async def test_without_a_password_a_bad_token_is_no_admin() -> None:
    for verifier in (None, Verifier({"k": KEY.public_key()})):
        with pytest.raises(Unauthenticated):
            await Authenticator("", verifier).caller("GET", "/v1/agents", {b"authorization": b"Bearer loci-run-x"})


async def test_it_dies_with_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    headers, start = shown(RUN), time.time()
    monkeypatch.setattr(time, "time", lambda: start + 301)
    with pytest.raises(Unauthenticated):
        await AUTHENTICATOR.caller("GET", "/v1/agents", headers)


@pytest.mark.parametrize(
    "route",
    [
        "GET /v1/agents",
        "POST /v1/agents",
        "POST /v1/agents/agent-1/messages",
        "PATCH /v1/agents/agent-1/core-memory/blocks/human",
        "POST /v1/agents/agent-1/archival-memory",
        "POST /v1/agents/agent-1/tools/roll/run",
        "POST /v1/conversations/conv-1/messages",
        "POST /v1/blocks",
        "DELETE /v1/blocks/block-1",
        "POST /v1/archives/archive-1/passages",
        "POST /v1/passages/search",
        "POST /v1/messages/search",
        "GET /v1/folders/source-1/files",
        "GET /v1/tools/tool-1",
        "POST /v1/tools/run",
        "POST /v1/tools/search",
        "GET /v1/runs/run-1/messages",
        "POST /v1/runs/run-1/stream",
        "GET /v1/steps/step-1",
        "POST /v1/chat/completions",
        "GET /v1/mcp-servers/mcp_server-1/tools",
    ],
)
async def test_what_it_may_use(route: str) -> None:
    method, path = route.split()
    await AUTHENTICATOR.caller(method, path, shown(RUN))


@pytest.mark.parametrize(
    "route",
    [
        "GET /v1/providers",
        "POST /v1/providers",
        "POST /v1/agentsX",
        "GET /v1//providers",
        "GET /providers",
        "PUT /v1/budgets/day",
        "GET /v1/usage",
        "GET /v1/sandbox-config",
        "POST /v1/sandbox-config/local",
        "POST /v1/tools",
        "PUT /v1/tools",
        "PATCH /v1/tools/tool-1",
        "DELETE /v1/tools/tool-1",
        "PUT /v1/tools/mcp/servers",
        "POST /v1/tools/mcp/servers/connect",
        "GET /v1/tools/mcp/oauth/callback",
        "POST /v1/mcp-servers",
        "POST /v1/mcp-servers/mcp_server-1/tools/tool-1/run",
        "POST /v1/tools/mcp/servers/tickets/tools/refund/execute",
        "GET /v1/mcp-servers/connect/mcp_server-1",
        "GET /v1/mcp-servers/mcp_server-1/resources/read",
        "GET /v1/mcp-servers/mcp_server-1/prompts",
        "DELETE /v1/mcp-servers/mcp_server-1",
        "POST /v1/folders",
        "POST /v1/folders/source-1/upload",
        "DELETE /v1/runs/run-1",
        "GET /v1/users",
        "POST /v1/client-side-access-tokens",
        "GET /v1/agents/agent-1/secrets",
        "POST /v1/agents/import",
        "POST /v1/templates",
        "POST /v1/templates/support/agents",
        "POST /v1/agents/agent-1/schedule",
        "POST /v1/api-keys",
        "POST /v1/identities",
        "POST /v1/groups",
        "POST /v1/environments/register",
        "WEBSOCKET /v1/environments/connection-1/ws",
        "POST /mcp",
        "PATCH /v1/agents/agent-1/tools/approval/roll",
        "PUT /v1/agents/agent-1/environment-variables/KEY",
        "POST /openai/v1/embeddings",
    ],
)
async def test_what_it_may_not(route: str) -> None:
    method, path = route.split()
    with pytest.raises(PermissionDenied, match="a tool may not") as caught:
        await AUTHENTICATOR.caller(method, path, shown(RUN))
    assert isinstance(caught.value, LociError)
    assert caught.value.reason == "RUN_NOT_PERMITTED"


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        ({"approve": True, "approval_request_id": "message-1"}, True),
        ({"approvals": [{"tool_call_id": "c", "approve": True}]}, True),
        ({"approvals": [{"tool_call_id": "c", "approve": False}]}, False),
        ({"approvals": [{"type": "tool", "tool_call_id": "c", "tool_return": "7", "status": "success"}]}, False),
    ],
)
def test_what_waits_for_a_person_is_not_approved_by_a_tool(answer: dict[str, object], refused: bool) -> None:
    messages = SendMessages.model_validate({"messages": [{"type": "approval", **answer}]}).input_messages()
    check_approvals(messages)
    with use_context(RUN):
        if refused:
            with pytest.raises(PermissionDenied, match="may not approve"):
                check_approvals(messages)
        else:
            check_approvals(messages)


def test_what_a_tool_may_not_set_here_another_may() -> None:
    check_members(["tool_rules"], "tool_rules")
    with use_context(RUN), pytest.raises(PermissionDenied, match="may not set tool_rules"):
        check_members(["name", "tool_rules"], "tool_rules")
    with use_context(RUN):
        check_members(["tool_rules"])


@pytest.mark.parametrize("name", ["secrets", "tool_exec_environment_variables"])
def test_a_page_sets_no_secrets(name: str) -> None:
    with use_context(replace(RUN, role="client")):
        check_members(["name", "tool_rules"], "tool_rules")
        with pytest.raises(PermissionDenied, match=f"the role client may not set {name}"):
            check_members(["name", name])
    with use_context(replace(RUN, role="developer")):
        check_members([name])
