"""Tenants apart, keys with roles, tokens for browsers, and the command that makes them, with the official SDK."""

from __future__ import annotations

import asyncio
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import letta_client
import pytest

from services.common.ids import from_public
from tests.e2e.conftest import PASSWORD
from tests.e2e.database import superuser
from tests.e2e.helpers import finished_file
from tests.e2e.stack import ROOT, Stack, own_port
from tests.polling import wait_until

UNKNOWN = "00000000-0000-4000-8000-0000000000aa"
DEFAULT = "org-00000000-0000-4000-8000-000000000000"


def loci(stack: Stack, *arguments: str) -> str:
    """Runs `loci`; returns its output."""
    environment = stack.environment | {"PYTHONPATH": f"{ROOT}:{ROOT / 'gen'}", "LOCI_BASE_URL": stack.url}
    done = subprocess.run(
        [sys.executable, "-m", "cli", *arguments],
        cwd=ROOT,
        env=environment | {"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Tenant:
    """An organization with an admin's key."""

    def __init__(self, stack: Stack, name: str) -> None:
        self.stack = stack
        self.id = loci(stack, "orgs", "create", name)
        self.key = loci(stack, "keys", "create", "admin", "--role", "admin", "--org", self.id)
        self.sdk = stack.client(api_key=self.key)
        self.http = httpx.Client(base_url=stack.url, headers={"authorization": f"Bearer {self.key}"}, timeout=30)

    def client(self, role: str, **options: Any) -> Any:
        """The SDK with a new key of this tenant."""
        made = self.http.post("/v1/api-keys/", json={"name": role, "role": role, **options}).json()
        return self.stack.client(api_key=made["key"])


@pytest.fixture(scope="module")
def tenants(guarded_stack: Stack) -> Iterator[tuple[Tenant, Tenant]]:
    """Two."""
    found = Tenant(guarded_stack, "Acme"), Tenant(guarded_stack, "Bolt")
    yield found
    for tenant in found:
        tenant.http.close()


def until_refused(attempt: Callable[[], object]) -> None:
    """Asks again and again until nobody is known. What is never forgotten is let in for ever."""

    def is_refused() -> bool:
        try:
            attempt()
        except letta_client.AuthenticationError:
            return True
        return False

    wait_until(is_refused, 60, problem=lambda: "it still opens the door")


def furnish(tenant: Tenant) -> set[str]:
    """One of each thing, in a tenant; their ids."""
    sdk = tenant.sdk
    agent = sdk.agents.create(
        name="Secretive", model="loci/demo", memory_blocks=[{"label": "human", "value": "x"}], tags=["hidden-tag"]
    )
    sdk.agents.messages.create(agent.id, input="My name is Ada.")
    [run] = sdk.runs.list(agent_id=agent.id, limit=1)
    things = [
        agent,
        run,
        sdk.blocks.create(label="shared", value="y"),
        sdk.archives.create(name="papers"),
        sdk.folders.create(name="folder"),
        sdk.tools.create(source_code='def peek() -> str:\n    """Peeks."""\n    return "x"\n'),
        sdk.conversations.create(agent_id=agent.id),
        *sdk.steps.list(agent_id=agent.id, limit=1),
    ]
    return {str(thing.id) for thing in things}


def test_no_list_shows_what_another_tenant_has(tenants: tuple[Tenant, Tenant]) -> None:
    mine, theirs = tenants
    own = furnish(mine)
    furnish(theirs)
    lists = [
        path
        for path, methods in mine.http.get("/openapi.json").json()["paths"].items()
        if "get" in methods and "{" not in path
    ]
    assert len(lists) > 15
    seen: set[str] = set()
    for path in lists:
        query = {"agent_id": next(each for each in own if each.startswith("agent-"))}
        for params in ({}, query):
            seen |= {each for each in own if each in mine.http.get(path, params=params).text}
            answer = theirs.http.get(path, params=params)
            assert answer.status_code != 500, (path, answer.text)
            assert not [each for each in own if each in answer.text.replace(query["agent_id"], "")], path
    # The lists would have shown them.
    assert len(seen) >= len(own) - 1
    for each in own:
        prefix, _, _ = each.partition("-")
        resource = {"conv": "conversations", "source": "folders"}.get(prefix, f"{prefix}s")
        assert theirs.http.get(f"/v1/{resource}/{each}").status_code == 404, each
        assert mine.http.get(f"/v1/{resource}/{each}").status_code == 200, each
    assert theirs.sdk.tools.list(name="peek").items[0].id not in own
    # Neither sees the other; the operator sees all.
    assert [each["id"] for each in theirs.http.get("/v1/orgs/").json()] == [theirs.id]
    assert {mine.id, theirs.id} <= set(re.findall(r"org-[0-9a-f-]{36}", loci(mine.stack, "orgs", "list")))


def limited_to_nothing(client: Any, conversation_id: str) -> str:
    """Asks for a conversation that is not to be seen; returns the refusal."""
    with pytest.raises(letta_client.NotFoundError) as caught:
        client.conversations.messages.list(conversation_id)
    return caught.value.response.text


def test_every_role(tenants: tuple[Tenant, Tenant]) -> None:
    tenant = tenants[0]
    agent = tenant.sdk.agents.create(model="loci/demo")
    other = tenant.sdk.agents.create(model="loci/demo")
    developer, reader = tenant.client("developer"), tenant.client("read-only")
    talker, limited = tenant.client("agent-only"), tenant.client("agent-only", agent_ids=[agent.id])
    for client in (developer, talker, limited):
        assert client.agents.messages.create(agent.id, input="Hello").stop_reason.stop_reason == "end_turn"
    assert list(talker.agents.messages.create(agent.id, input="Hello", streaming=True))
    conversation = limited.conversations.create(agent_id=agent.id)
    assert limited.conversations.messages.list(conversation.id).items
    assert reader.agents.retrieve(agent.id).id == agent.id
    assert reader.agents.messages.list(agent.id).items
    foreign = tenant.sdk.conversations.create(agent_id=other.id)
    refused: list[Callable[[], object]] = [
        lambda: reader.agents.messages.create(agent.id, input="Hello"),
        lambda: reader.agents.delete(agent.id),
        lambda: talker.agents.update(agent.id, name="Mine"),
        lambda: talker.blocks.list(),
        lambda: limited.agents.retrieve(other.id),
        lambda: limited.agents.messages.create(other.id, input="Hello"),
        lambda: limited.agents.list(),
        lambda: limited.conversations.list(),
        lambda: developer.get("/v1/api-keys/", cast_to=object),
        lambda: developer.post("/v1/orgs/", body={"name": "x"}, cast_to=object),
        # Of its own tenant it is the admin, of no other.
        lambda: tenant.sdk.post("/v1/orgs/", body={"name": "x"}, cast_to=object),
    ]
    for attempt in refused:
        with pytest.raises(letta_client.PermissionDeniedError):
            attempt()
    assert developer.agents.update(agent.id, name="Renamed").name == "Renamed"
    # What is another agent's is as if it were not there.
    said = [limited_to_nothing(limited, name) for name in (foreign.id, f"conv-{UNKNOWN}")]
    assert said[0].replace(foreign.id, f"conv-{UNKNOWN}") == said[1]


def test_who_am_i(tenants: tuple[Tenant, Tenant]) -> None:
    tenant = tenants[0]
    agent = tenant.sdk.agents.create(model="loci/demo")

    def caller(client: Any) -> Any:
        return client.get("/v1/whoami", cast_to=object)

    me = caller(tenant.sdk)
    assert (me["organization_id"], me["role"], me["agents"], me["has_credential"]) == (tenant.id, "admin", None, True)
    assert "own" in me["rights"]
    assert "own" not in caller(tenant.client("developer"))["rights"]
    assert caller(tenant.client("read-only"))["rights"] == ["read_agent", "read_messages", "read"]
    limited = caller(tenant.client("agent-only", agent_ids=[agent.id]))
    assert limited["agents"] == {agent.id: ["read_agent", "read_messages", "write_messages"]}
    policy = [{"type": "agent", "id": agent.id, "access": ["read_messages"]}]
    token = tenant.sdk.access_tokens.create(hostname="https://app.test", policy=policy).token
    assert caller(tenant.stack.client(api_key=token))["agents"] == {agent.id: ["read_messages"]}
    for stranger in (tenant.stack.client(), tenant.stack.client(api_key="loci-key-unknown")):
        with pytest.raises(letta_client.AuthenticationError):
            caller(stranger)


def test_a_revoked_key_is_refused_soon(tenants: tuple[Tenant, Tenant]) -> None:
    tenant = tenants[0]
    made = tenant.http.post("/v1/api-keys/", json={"name": "short"}).json()
    client = tenant.stack.client(api_key=made["key"])
    client.agents.list(limit=1)
    listed = tenant.http.get("/v1/api-keys/").json()
    assert [each["role"] for each in listed if each["id"] == made["id"]] == ["developer"]
    assert made["key"] not in str(listed)
    tenant.http.delete(f"/v1/api-keys/{made['id']}").raise_for_status()
    until_refused(lambda: client.agents.list(limit=1))


def test_tokens_for_browsers(tenants: tuple[Tenant, Tenant]) -> None:
    tenant = tenants[0]
    agent, other = (tenant.sdk.agents.create(model="loci/demo") for _ in range(2))
    made = tenant.sdk.access_tokens.create(
        hostname="https://app.test",
        policy=[{"type": "agent", "id": agent.id, "access": ["read_messages", "write_messages"]}],
    )
    page = tenant.stack.client(api_key=made.token, default_headers={"origin": "https://app.test"})
    assert page.agents.messages.create(agent.id, input="Hello").messages
    assert page.agents.messages.list(agent.id).items
    refused: list[Callable[[], object]] = [
        lambda: page.agents.retrieve(agent.id),
        lambda: page.agents.update(agent.id, name="Mine"),
        lambda: page.agents.messages.create(other.id, input="Hello"),
        lambda: page.agents.list(),
        lambda: page.access_tokens.list(),
        lambda: tenant.stack.client(
            api_key=made.token, default_headers={"origin": "https://evil.test"}
        ).agents.messages.list(agent.id),
    ]
    for attempt in refused:
        with pytest.raises(letta_client.PermissionDeniedError):
            attempt()
    tenant.sdk.agents.messages.create(other.id, input="Hello")
    [foreign] = tenant.sdk.runs.list(agent_id=other.id, limit=1)
    assert page.agents.messages.cancel(agent.id, run_ids=[foreign.id]) == {foreign.id: "failed"}
    [listed] = tenant.sdk.access_tokens.list(agent_id=agent.id).tokens
    assert made.token.startswith(f"{listed.token}-")
    assert tenants[1].sdk.access_tokens.list().tokens == []
    tenant.sdk.access_tokens.delete(listed.token)
    until_refused(lambda: page.agents.messages.list(agent.id))


def test_a_token_ends_by_itself(tenants: tuple[Tenant, Tenant]) -> None:
    tenant = tenants[0]
    agent = tenant.sdk.agents.create(model="loci/demo")
    # Its end is cut to whole seconds.
    end = math.floor(time.time()) + 3
    made = tenant.sdk.access_tokens.create(
        hostname="http://localhost:3000",
        policy=[{"type": "agent", "id": agent.id, "access": ["read_agent"]}],
        expires_at=time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(end)) + "+00:00",
    )
    page = tenant.stack.client(api_key=made.token)
    until_refused(lambda: page.agents.retrieve(agent.id))
    # Not before its end, so it opened the door until then.
    assert time.time() >= end


def test_a_page_asks_first(guarded_stack: Stack) -> None:
    asks = {"origin": "https://app.test", "access-control-request-method": "POST"}
    answer = httpx.options(
        f"{guarded_stack.url}/v1/agents/",
        headers=asks | {"access-control-request-headers": "authorization"},
        timeout=30,
    )
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "https://app.test")


def test_a_key_with_a_limit(tenants: tuple[Tenant, Tenant]) -> None:
    client = tenants[0].client("developer", requests_per_minute=2)
    for _ in range(2):
        client.agents.list(limit=1)
    with pytest.raises(letta_client.RateLimitError) as caught:
        client.agents.list(limit=1)
    assert int(caught.value.response.headers["retry-after"]) >= 1


def test_a_deleted_tenant_is_locked_out(guarded_stack: Stack) -> None:
    tenant = Tenant(guarded_stack, "Gone")
    tenant.sdk.agents.create(model="loci/demo")
    loci(guarded_stack, "orgs", "delete", tenant.id, "--yes")
    assert tenant.id not in loci(guarded_stack, "orgs", "list")
    until_refused(tenant.sdk.agents.list)
    tenant.http.close()


def furnish_more(tenant: Tenant, silent_port: int) -> None:
    """Creates, in every service, objects that belong to no agent."""
    sdk = tenant.sdk
    archive = sdk.archives.create(name="letters", embedding="loci/hash")
    sdk.archives.passages.create(archive.id, text="Dear Ada.", tags=["letter"])
    folder = sdk.folders.create(name="deep", embedding="loci/hash")
    file = sdk.folders.files.upload(folder.id, file=("note.txt", b"A cat sleeps."))
    finished_file(sdk, folder.id, file.id)
    for path, body in (
        ("/v1/sandbox-config/", {"config": {"timeout": 5}}),
        (
            "/v1/providers/",
            # Nobody listens there; it is stored all the same.
            {
                "name": "own",
                "provider_type": "openai",
                "api_key": "sk-x",
                "base_url": f"http://127.0.0.1:{silent_port}/v1",
            },
        ),
        ("/v1/identities/", {"identifier_key": "ada", "name": "Ada", "identity_type": "user"}),
        (
            "/v1/mcp-servers/",
            {"server_name": "far", "config": {"mcp_server_type": "sse", "server_url": "https://mcp.test"}},
        ),
    ):
        answer = tenant.http.post(path, json=body)
        assert answer.status_code in (200, 201), (path, answer.text)


async def rows_of(stack: Stack, *organizations: str, at_once: bool = False) -> list[dict[str, int]]:
    """Counts a tenant's rows in each table of every schema. at_once: its orders do not wait for their time."""
    tables = """
        SELECT t.oid::regclass::text FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid
        WHERE a.attname = 'organization_id' AND t.relkind IN ('r', 'p') AND NOT t.relispartition
    """
    found = []
    async with superuser(stack) as connection:
        names = [row[0] for row in await connection.fetch(tables)]
        assert {name.partition(".")[0] for name in names} == {"agent", "llm_gateway", "memory", "tool_runner"}
        for organization_id in (from_public("org", each) for each in organizations):
            if at_once:
                sooner = "UPDATE agent.outbox SET not_before = now() WHERE organization_id = $1 AND attempts = 0"
                await connection.execute(sooner, organization_id)
            counts = {
                name: await connection.fetchval(
                    f"SELECT count(*) FROM {name} WHERE organization_id = $1", organization_id
                )
                for name in names
            }
            found.append({name: count for name, count in counts.items() if count})
    return found


def test_nothing_is_left_of_a_deleted_tenant(guarded_stack: Stack) -> None:
    gone, kept = Tenant(guarded_stack, "Leaves"), Tenant(guarded_stack, "Stays")
    with gone.http, kept.http:
        leaves_nothing(guarded_stack, gone, kept)


def leaves_nothing(guarded_stack: Stack, gone: Tenant, kept: Tenant) -> None:
    """Deletes the one, and compares what there is of both."""
    for tenant in (gone, kept):
        furnish(tenant)
        with own_port() as silent_port:
            furnish_more(tenant, silent_port)
    # Usage is written behind the back of its call.

    def both() -> list[dict[str, int]] | None:
        counts = asyncio.run(rows_of(guarded_stack, gone.id, kept.id))
        return counts if all(each.get("llm_gateway.usage") for each in counts) else None

    full, before = wait_until(both, pause=0.1)
    for table in (
        "memory.blocks",
        "memory.passages",
        "memory.file_pages",
        "tool_runner.tools",
        "tool_runner.mcp_servers",
        "tool_runner.sandbox_configs",
        "llm_gateway.providers",
        "llm_gateway.usage",
        "agent.agents",
        "agent.identities",
    ):
        assert min(full[table], before[table]) >= 1, table
    loci(guarded_stack, "orgs", "delete", gone.id, "--yes")

    def left() -> dict[str, int]:
        return asyncio.run(rows_of(guarded_stack, gone.id, at_once=True))[0]

    wait_until(lambda: not left(), 60, pause=0.2, problem=lambda: str(left()))
    [after] = asyncio.run(rows_of(guarded_stack, kept.id))
    passing = {"agent.outbox", "agent.ready_tenants", "agent.run_queue", "memory.jobs"}
    assert {
        name: after.get(name, 0) for name in before if name not in passing and after.get(name, 0) < before[name]
    } == {}
    assert len(kept.sdk.agents.list().items) == 1
    refused = httpx.delete(
        f"{guarded_stack.url}/v1/orgs/",
        params={"org_id": DEFAULT},
        headers={"authorization": f"Bearer {PASSWORD}"},
        timeout=30,
    )
    assert refused.status_code == 409, refused.text


def test_the_command(guarded_stack: Stack) -> None:
    key = loci(guarded_stack, "keys", "create", "from the terminal", "--role", "read-only", "--rpm", "5")
    assert key.startswith("loci-key-")
    line = next(line for line in loci(guarded_stack, "keys", "list").splitlines() if "from the terminal" in line)
    assert ("read-only" in line, key not in line) == (True, True)
    loci(guarded_stack, "keys", "revoke", line.split()[0])
    assert "from the terminal" not in loci(guarded_stack, "keys", "list")
