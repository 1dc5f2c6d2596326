"""Keys, tokens and roles: what may be made, and what each may call over gRPC."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from services.agent.bootstrap import _SERVICES
from services.agent.resources.access.model import (
    OWN,
    READ,
    TALK,
    WRITE,
    AgentAccess,
    KeyDraft,
    TokenDraft,
    check_key,
    check_token,
    hash_of,
    hint_of,
    may,
    merge_policy,
    new_key,
    new_token,
    right_of,
)
from services.common.core.refusals import Refused

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
ONE = UUID(int=1)
TOKEN = TokenDraft("https://app.test", (AgentAccess(ONE, ("read_agent",)),), LATER)


def test_what_keys_and_tokens_say() -> None:
    first, second = new_key(), new_key()
    assert first != second
    assert (first[:9], len(first)) == ("loci-key-", 52)
    assert first.startswith(hint_of(first))
    assert len(hint_of(first)) == 13
    assert new_token(ONE).startswith(f"loci-ct-{ONE}-")
    assert len(hash_of(first)) == 32


def key(**changes: object) -> KeyDraft:
    fields: dict[str, object] = {
        "user_id": None,
        "name": "ci",
        "role": "agent-only",
        "agent_ids": (),
        "requests_per_minute": None,
        "expires_at": None,
    }
    return KeyDraft(**fields | changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("draft", [key(), key(agent_ids=(ONE,), requests_per_minute=1, expires_at=LATER)])
def test_keys_that_may_be(draft: KeyDraft) -> None:
    check_key(draft, NOW)


@pytest.mark.parametrize(
    ("draft", "says"),
    [
        (key(name=""), "a name"),
        (key(name="\0"), "a name"),
        (key(name="x" * 257), "a name"),
        (key(role="developer", agent_ids=(ONE,)), "leave agent_ids out"),
        (key(agent_ids=(ONE,) * 101), "at most 100"),
        (key(requests_per_minute=0), "requests_per_minute"),
        (key(expires_at=NOW), "over"),
    ],
)
def test_keys_that_may_not(draft: KeyDraft, says: str) -> None:
    with pytest.raises(Refused, match=says):
        check_key(draft, NOW)


def test_tokens_that_may_be() -> None:
    check_token(TOKEN, NOW)
    check_token(TokenDraft("http://localhost:3000/chat", TOKEN.policy, LATER), NOW)


@pytest.mark.parametrize(
    "draft",
    [
        TokenDraft("app.test", TOKEN.policy, LATER),
        TokenDraft("ftp://app.test", TOKEN.policy, LATER),
        TokenDraft("https://", TOKEN.policy, LATER),
        TokenDraft("https://app.test:99999", TOKEN.policy, LATER),
        TokenDraft("https://app.test\n", TOKEN.policy, LATER),
        TokenDraft("https://app.test", (), LATER),
        TokenDraft("https://app.test", (AgentAccess(ONE, ()),), LATER),
        TokenDraft("https://app.test", (AgentAccess(ONE, ("own_agent",)),), LATER),
        TokenDraft("https://app.test", TOKEN.policy, NOW),
    ],
)
def test_tokens_that_may_not(draft: TokenDraft) -> None:
    with pytest.raises(Refused):
        check_token(draft, NOW)


def test_an_agent_named_twice_is_one() -> None:
    twice = [AgentAccess(ONE, ("read_agent", "read_agent")), AgentAccess(ONE, ("write_agent",))]
    assert merge_policy(twice) == (AgentAccess(ONE, ("read_agent", "write_agent")),)


@pytest.mark.parametrize(
    ("method", "right"),
    [
        ("AgentService/GetAgent", READ),
        ("AgentService/ListAgents", READ),
        ("AgentService/CreateAgent", WRITE),
        ("AgentService/RunAgentTool", WRITE),
        ("AgentService/AttachTool", WRITE),
        ("MessageService/SendMessages", TALK),
        ("MessageService/StreamMessages", TALK),
        ("MessageService/SearchMessages", READ),
        ("MessageService/CompactConversation", WRITE),
        ("RunService/StreamRun", READ),
        ("RunService/CancelRuns", TALK),
        ("RunService/DeleteRun", WRITE),
        ("StepService/SetStepFeedback", WRITE),
        ("AccessService/CreateClientToken", WRITE),
        ("AccessService/CreateApiKey", OWN),
        ("AccessService/ListUsers", OWN),
        ("AccessService/Authenticate", OWN),
        ("SomeService/Invented", WRITE),
    ],
)
def test_what_a_method_needs(method: str, right: str) -> None:
    assert right_of(f"loci.agent.v1.{method}") == right


@pytest.mark.parametrize(
    ("role", "rights"),
    [
        ("admin", {READ, TALK, WRITE, OWN}),
        ("developer", {READ, TALK, WRITE}),
        ("agent-only", {READ, TALK}),
        ("read-only", {READ}),
        ("client", set()),
        ("run", set()),
        ("", set()),
    ],
)
def test_what_a_role_may(role: str, rights: set[str]) -> None:
    examples = {
        READ: "AgentService/GetAgent",
        TALK: "MessageService/SendMessages",
        WRITE: "AgentService/UpdateAgent",
        OWN: "AccessService/ListApiKeys",
    }
    assert {right for right, method in examples.items() if may(role, f"loci.agent.v1.{method}")} == rights


def test_lesser_roles_own_nothing() -> None:
    for service in _SERVICES:
        assert not may("agent-only", f"{service}/DeleteAnything")
        assert not may("read-only", f"{service}/UpdateAnything")
