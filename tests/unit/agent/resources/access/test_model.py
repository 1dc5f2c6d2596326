"""Keys, tokens and roles: what may be made, and what each may call over gRPC."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from loci.agent.v1 import access_service_pb2 as wire
from services.agent.bootstrap import _SERVICES
from services.agent.resources.access.convert import key_drafts, token_drafts
from services.agent.resources.access.model import (
    OWN,
    READ,
    TALK,
    WRITE,
    AgentAccess,
    ApiKeySettings,
    ClientTokenSettings,
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
TOKEN = ClientTokenSettings(hostname="https://app.test", policy=(AgentAccess(ONE, ("read_agent",)),), expires_at=LATER)


def test_what_keys_and_tokens_say() -> None:
    first, second = new_key(), new_key()
    assert first != second
    assert (first[:9], len(first)) == ("loci-key-", 52)
    assert first.startswith(hint_of(first))
    assert len(hint_of(first)) == 13
    assert new_token(ONE).startswith(f"loci-ct-{ONE}-")
    assert len(hash_of(first)) == 32


@pytest.mark.parametrize(
    "key",
    [
        ApiKeySettings(name="ci"),
        ApiKeySettings(name=" ci ", role="agent-only", agent_ids=(ONE,), requests_per_minute=1, expires_at=LATER),
    ],
)
def test_keys_that_may_be(key: ApiKeySettings) -> None:
    assert check_key(key, NOW) == replace(key, name="ci")


@pytest.mark.parametrize(
    ("key", "says"),
    [
        (ApiKeySettings(), "name must not be blank"),
        (ApiKeySettings(name=" "), "name must not be blank"),
        (ApiKeySettings(name="ci", agent_ids=(ONE,)), "agent_ids must be empty"),
        (ApiKeySettings(name="ci", expires_at=NOW), "over"),
    ],
)
def test_keys_that_may_not(key: ApiKeySettings, says: str) -> None:
    with pytest.raises(Refused, match=says):
        check_key(key, NOW)


@pytest.mark.parametrize(
    ("key", "says"),
    [
        (wire.ApiKey(name="x" * 257), "name must have at most 256 characters"),
        (wire.ApiKey(name="x", role="owner"), "role must be one of: admin, developer, agent-only, read-only"),
        (
            wire.ApiKey(name="x", agent_ids=[f"agent-{UUID(int=number)}" for number in range(101)]),
            "agent_ids must have at most 100 items",
        ),
        (wire.ApiKey(name="x", requests_per_minute=0), "requests_per_minute must be 1 to 1,000,000"),
        (wire.ApiKey(name="x", expires_at=Timestamp(seconds=2**60)), "expires_at is not a time"),
    ],
)
def test_bounds_of_keys(key: wire.ApiKey, says: str) -> None:
    with pytest.raises(Refused, match=says) as refused:
        key_drafts.draft(key)
    assert refused.value.reason == "API_KEY_INVALID"


def test_tokens_that_may_be() -> None:
    assert check_token(TOKEN, NOW) == TOKEN
    check_token(replace(TOKEN, hostname="http://localhost:3000/chat"), NOW)
    assert check_token(replace(TOKEN, expires_at=None), NOW).expires_at == NOW + timedelta(minutes=5)


@pytest.mark.parametrize(
    "changes",
    [
        {"hostname": "app.test"},
        {"hostname": "ftp://app.test"},
        {"hostname": "https://"},
        {"hostname": "https://app.test:99999"},
        {"hostname": "https://app.test\n"},
        {"policy": (AgentAccess(ONE, ()),)},
        {"policy": (AgentAccess(ONE, ("own_agent",)),)},
        {"expires_at": NOW},
    ],
)
def test_tokens_that_may_not(changes: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        check_token(replace(TOKEN, **changes), NOW)


def test_bounds_of_tokens() -> None:
    access = wire.AgentAccess(agent_id=f"agent-{ONE}", access=["read_agent"])
    with pytest.raises(Refused, match="policy must have 1 to 100 items"):
        token_drafts.draft(wire.ClientToken(hostname="https://app.test"))
    with pytest.raises(Refused, match="hostname must have at most"):
        token_drafts.draft(wire.ClientToken(hostname="https://" + "a" * 2_048, policy=[access]))


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
