"""Variables and sandbox settings over real gRPC on a real Postgres: sealed there, masked here, opened for calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from loci.common.v1.page_pb2 import ORDER_DESCENDING, PageRequest
from loci.tool.v1 import sandbox_config_service_pb2 as wire
from loci.tool.v1.tool_service_pb2 import DeleteToolRequest
from services.common.database import open_pool
from services.common.encryption import Sealer
from services.common.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound, Unavailable
from services.common.ids import from_public
from services.common.statement_counter import StatementCounter
from services.tool_runner.core.ports import CallEnvironment
from services.tool_runner.executions.sandbox_runner import NoLayers
from services.tool_runner.sandbox_configs.call_environments import TenantEnvironments
from services.tool_runner.sandbox_configs.model import MASK, Owner, Scope
from services.tool_runner.sandbox_configs.packages import Packages
from services.tool_runner.sandbox_configs.service import SandboxConfigService
from services.tool_runner.sandbox_configs.store import PostgresSandboxConfigs
from services.tool_runner.sandbox_configs.vault import Vault
from tests.integration.tool_runner.harness import SEALER, Service, fails
from tests.page_requests import paged


def agent() -> str:
    return f"agent-{uuid4()}"


def drafts(values: dict[str, str]) -> list[wire.Variable]:
    return [wire.Variable(key=key, value=value) for key, value in values.items()]


async def set_all(runner: Service, values: dict[str, str], **owner: str) -> list[wire.Variable]:
    request = wire.SetEnvironmentRequest(owner=wire.Owner(**owner), variables=drafts(values))
    return list((await runner.sandbox_configs.SetEnvironment(request)).variables)


async def ensure(runner: Service, kind: str = "local") -> wire.SandboxConfig:
    return (await runner.sandbox_configs.EnsureSandboxConfig(wire.EnsureSandboxConfigRequest(type=kind))).sandbox_config


async def add(runner: Service, config_id: str, key: str, value: str) -> wire.Variable:
    request = wire.CreateVariableRequest(sandbox_config_id=config_id, variable=wire.Variable(key=key, value=value))
    return (await runner.sandbox_configs.CreateVariable(request)).variable


@asynccontextmanager
async def stored(url: str) -> AsyncIterator[tuple[asyncpg.Pool, TenantEnvironments]]:
    async with await open_pool(url, size=2) as pool:
        yield pool, TenantEnvironments(PostgresSandboxConfigs(pool), Vault(SEALER))


async def of_call(
    runner: Service, url: str, tool_id: str, agent_id: str | None = None, **options: Any
) -> CallEnvironment:
    async with await open_pool(url, size=2) as pool:
        found = TenantEnvironments(PostgresSandboxConfigs(pool), **({"vault": Vault(SEALER)} | options))
        agent_uuid = from_public("agent", agent_id) if agent_id else None
        return await found.of_call(runner.caller.organization_id, from_public("tool", tool_id), agent_uuid)


async def test_values_are_shown_where_the_operator_says_so(runner: Service, tool_url: str) -> None:
    organization_id = runner.caller.organization_id
    await set_all(runner, {"A": "one", "B": ""}, agent_id=(agent_id := agent()))
    owner = Owner(Scope.AGENT, from_public("agent", agent_id))
    async with await open_pool(tool_url, size=2) as pool:
        store = PostgresSandboxConfigs(pool)
        stored = await store.batch(organization_id, [owner])
        for sealer, shows, values in (
            (SEALER, True, ["one", ""]),
            (SEALER, False, [MASK, ""]),
            (Sealer([b"2" * 32]), True, [MASK, MASK]),  # one lost key does not hide the list
        ):
            service = SandboxConfigService(store, Vault(sealer), Packages(NoLayers()), shows_values=shows)
            shown = await service.shown_values(organization_id, stored)
            assert [shown[variable.id] for variable in stored] == values


async def test_later_owners_win_and_others_are_not_seen(runner: Service, tool_url: str) -> None:
    tool_id, agent_id, config = (await runner.upsert()).id, agent(), await ensure(runner)
    for key in ("A", "B", "C"):
        await add(runner, config.id, key, "sandbox")
    await set_all(runner, {"B": "tool", "C": "tool"}, tool_id=tool_id)
    await set_all(runner, {"C": "agent", "D": ""}, agent_id=agent_id)
    await set_all(runner, {"A": "another"}, agent_id=agent())
    found = await of_call(runner, tool_url, tool_id, agent_id)
    assert found.variables == {"A": "sandbox", "B": "tool", "C": "agent", "D": ""}
    assert "agent" not in repr(found)
    assert (await of_call(runner, tool_url, tool_id)).variables == {"A": "sandbox", "B": "tool", "C": "tool"}
    other = await of_call(runner, tool_url, tool_id, vault=Vault(SEALER), kind="e2b")
    assert other.variables == {"B": "tool", "C": "tool"}
    with runner.of(uuid4()):
        assert (await runner.sandbox_configs.ListSandboxConfigs(wire.ListSandboxConfigsRequest())).sandbox_configs == []


async def test_a_call_reads_one_statement(runner: Service, tool_url: str) -> None:
    counter = StatementCounter()
    async with await open_pool(tool_url, counter=counter) as pool:
        environments = TenantEnvironments(PostgresSandboxConfigs(pool), Vault(SEALER))
        await environments.of_call(runner.caller.organization_id, uuid4(), uuid4())
        counter.reset()
        await environments.of_call(runner.caller.organization_id, uuid4(), uuid4())
        await asyncio.sleep(0)
        assert counter.statements == 1


async def test_values_are_sealed_for_their_row_and_never_shown(runner: Service, tool_url: str) -> None:
    agent_id = agent()
    [full, nothing] = await set_all(runner, {"KEY": "s3cret value", "NOTHING": ""}, agent_id=agent_id)
    assert (full.value, nothing.value) == (MASK, "")
    assert full.id.startswith("agent-env-")
    assert full.owner.agent_id == agent_id
    batch = await runner.sandbox_configs.BatchGetEnvironments(
        wire.BatchGetEnvironmentsRequest(owners=[wire.Owner(agent_id=agent_id), wire.Owner(agent_id=agent())])
    )
    assert list(batch.variables) == [full, nothing]
    async with stored(tool_url) as (pool, environments):
        rows = await pool.fetch("SELECT * FROM tool_runner.variables")
        assert not [row for row in rows if b"s3cret" in bytes(row["value"])]
        tool_id, agent_uuid = uuid4(), from_public("agent", agent_id)
        # A value that somebody moved to another row is not opened there.
        ids = [from_public("agent-env", each.id) for each in (full, nothing)]
        await pool.execute(
            "UPDATE tool_runner.variables SET value = o.value FROM tool_runner.variables o"
            " WHERE o.id = $1 AND variables.id = $2",
            *ids,
        )
        with pytest.raises(FailedPrecondition, match="NOTHING cannot be read") as caught:
            await environments.of_call(runner.caller.organization_id, tool_id, agent_uuid)
        assert caught.value.reason == "CREDENTIALS_UNREADABLE"


async def test_another_key_says_what_to_do(runner: Service, tool_url: str) -> None:
    tool_id = (await runner.upsert()).id
    await set_all(runner, {"KEY": "s3cret value"}, tool_id=tool_id)
    for keys in ([b"x" * 32], [b"x" * 32, bytes(range(32))]):
        vault = Vault(Sealer(keys))
        if len(keys) == 2:
            assert (await of_call(runner, tool_url, tool_id, vault=vault)).variables == {"KEY": "s3cret value"}
        else:
            with pytest.raises(FailedPrecondition, match="LOCI_ENCRYPTION_KEY") as caught:
                await of_call(runner, tool_url, tool_id, vault=vault)
            assert "s3cret" not in str(caught.value)


async def test_setting_replaces_and_the_mask_keeps(runner: Service, tool_url: str) -> None:
    tool_id = (await runner.upsert()).id
    before = {each.key: each.id for each in await set_all(runner, {"A": "one", "B": "two"}, tool_id=tool_id)}
    after = await set_all(runner, {"B": MASK, "C": "three"}, tool_id=tool_id)
    assert [each.key for each in after] == ["B", "C"]
    assert after[0].id == before["B"]
    assert (await of_call(runner, tool_url, tool_id)).variables == {"B": "two", "C": "three"}
    [changed] = await set_all(runner, {"B": "new"}, tool_id=tool_id)
    assert changed.id == before["B"]
    assert (await of_call(runner, tool_url, tool_id)).variables == {"B": "new"}
    with fails(InvalidArgument, "ENVIRONMENT_INVALID") as caught:
        await set_all(runner, {"B": MASK, "NEW": MASK}, tool_id=tool_id)
    assert "NEW" in caught[0].message
    assert await set_all(runner, {}, tool_id=tool_id) == []


async def test_many_who_set_at_once_leave_one_set(runner: Service) -> None:
    agent_id = agent()
    await asyncio.gather(*(set_all(runner, {f"K{n}": "v", "SAME": str(n)}, agent_id=agent_id) for n in range(8)))
    request = wire.BatchGetEnvironmentsRequest(owners=[wire.Owner(agent_id=agent_id)])
    assert len((await runner.sandbox_configs.BatchGetEnvironments(request)).variables) == 2


async def test_what_cannot_be_a_variable_is_refused_without_its_value(runner: Service) -> None:
    for key, value in (("1A", "s3cret"), ("PATH", "s3cret"), ("https_proxy", "s3cret"), ("A", "s3cret\0")):
        with fails(InvalidArgument, "ENVIRONMENT_INVALID") as caught:
            await set_all(runner, {key: value}, agent_id=agent())
        assert "s3cret" not in caught[0].message
    for owner in ({}, {"sandbox_config_id": f"sandbox-{uuid4()}"}):
        with fails(InvalidArgument, "ENVIRONMENT_INVALID"):
            await set_all(runner, {"A": "b"}, **owner)
    with fails(NotFound, "TOOL_NOT_FOUND"):
        await set_all(runner, {"A": "b"}, tool_id=f"tool-{uuid4()}")


async def test_what_goes_with_its_owner(runner: Service, tool_url: str) -> None:
    tool_id, agent_id, config = (await runner.upsert()).id, agent(), await ensure(runner)
    await set_all(runner, {"A": "b"}, tool_id=tool_id)
    await set_all(runner, {"A": "b"}, agent_id=agent_id)
    await add(runner, config.id, "A", "b")
    purge = wire.PurgeEnvironmentRequest(owner=wire.Owner(agent_id=agent_id))
    assert [(await runner.sandbox_configs.PurgeEnvironment(purge)).erased for _ in range(2)] == [1, 0]
    await runner.tools.DeleteTool(DeleteToolRequest(tool_id=tool_id))
    await runner.sandbox_configs.DeleteSandboxConfig(wire.DeleteSandboxConfigRequest(id=config.id))
    with fails(NotFound, "SANDBOX_CONFIG_NOT_FOUND"):
        await runner.sandbox_configs.DeleteSandboxConfig(wire.DeleteSandboxConfigRequest(id=config.id))
    async with stored(tool_url) as (pool, _):
        left = "SELECT count(*) FROM tool_runner.variables WHERE organization_id = $1"
        assert await pool.fetchval(left, runner.caller.organization_id) == 0


async def test_settings_of_sandboxes(runner: Service, tool_url: str) -> None:
    made = await ensure(runner)
    assert (made.type, made.config_json, await ensure(runner)) == ("local", "{}", made)
    with fails(AlreadyExists, "SANDBOX_CONFIG_EXISTS"):
        await runner.sandbox_configs.CreateSandboxConfig(wire.CreateSandboxConfigRequest(type="local"))
    second = await runner.sandbox_configs.CreateSandboxConfig(wire.CreateSandboxConfigRequest(type="e2b"))
    pages = [
        (
            await runner.sandbox_configs.ListSandboxConfigs(wire.ListSandboxConfigsRequest(**paged(**fields)))
        ).sandbox_configs
        for fields in ({}, {"page_size": 1}, {"after": made.id}, {"type": "e2b"})
    ]
    ids = [[config.id for config in page] for page in pages]
    other = second.sandbox_config.id
    assert ids == [[made.id, other], [made.id], [other], [other]]
    with fails(NotFound, "CURSOR_NOT_FOUND"):
        await runner.sandbox_configs.ListSandboxConfigs(
            wire.ListSandboxConfigsRequest(**paged(after=f"sandbox-{uuid4()}"))
        )
    backwards = wire.ListSandboxConfigsRequest(page=PageRequest(page_size=1, order=ORDER_DESCENDING))
    first = await runner.sandbox_configs.ListSandboxConfigs(backwards)
    backwards.page.page_token = first.next_page_token
    last = await runner.sandbox_configs.ListSandboxConfigs(backwards)
    assert [config.id for each in (first, last) for config in each.sandbox_configs] == [other, made.id]
    assert last.next_page_token == ""
    tool_id = (await runner.upsert()).id
    before = await of_call(runner, tool_url, tool_id)
    config = json.dumps({"pip_requirements": [{"name": "six", "version": None}], "sandbox_dir": "~/x"})
    update = wire.UpdateSandboxConfigRequest(id=made.id, config_json=config)
    assert (await runner.sandbox_configs.UpdateSandboxConfig(update)).sandbox_config.config_json == config
    after = await of_call(runner, tool_url, tool_id)
    assert after.pip_requirements == '[{"name":"six","version":null}]'
    assert (before.pip_requirements, after.npm_requirements) == ("", "")
    assert len({before.fingerprint, after.fingerprint}) == 2
    assert len(after.fingerprint) == 64
    update.config_json = '{"use_venv": "yes"}'
    with fails(InvalidArgument, "SANDBOX_CONFIG_INVALID") as caught:
        await runner.sandbox_configs.UpdateSandboxConfig(update)
    assert "use_venv" in caught[0].message


async def test_variables_of_a_sandbox(runner: Service, tool_url: str) -> None:
    config, tool_id = await ensure(runner), (await runner.upsert()).id
    first, second = await add(runner, config.id, "A", "one"), await add(runner, config.id, "B", "two")
    assert first.id.startswith("sandbox-env-")
    with fails(AlreadyExists, "VARIABLE_EXISTS"):
        await add(runner, config.id, "A", "three")
    with fails(NotFound, "SANDBOX_CONFIG_NOT_FOUND"):
        await add(runner, f"sandbox-{uuid4()}", "A", "three")
    with fails(InvalidArgument, "ENVIRONMENT_INVALID"):
        await add(runner, config.id, "C", MASK)
    listing = wire.ListVariablesRequest(sandbox_config_id=config.id, page=PageRequest(after=first.id))
    assert list((await runner.sandbox_configs.ListVariables(listing)).variables) == [second]

    async def update(variable_id: str, **fields: Any) -> wire.Variable:
        request = wire.UpdateVariableRequest(
            id=variable_id, variable=wire.Variable(**fields), update_mask=FieldMask(paths=list(fields))
        )
        return (await runner.sandbox_configs.UpdateVariable(request)).variable

    changed = await update(first.id, key="Z", value=MASK, description="mine")
    assert (changed.key, changed.description, changed.value) == ("Z", "mine", MASK)
    assert (await of_call(runner, tool_url, tool_id)).variables == {"B": "two", "Z": "one"}
    await update(first.id, value="new")
    assert (await of_call(runner, tool_url, tool_id)).variables == {"B": "two", "Z": "new"}
    with fails(AlreadyExists, "VARIABLE_EXISTS"):
        await update(first.id, key="B")
    with fails(NotFound, "VARIABLE_NOT_FOUND"):
        await update(f"sandbox-env-{uuid4()}", key="B")
    delete = wire.DeleteVariableRequest(id=second.id)
    await runner.sandbox_configs.DeleteVariable(delete)
    with fails(NotFound, "VARIABLE_NOT_FOUND"):
        await runner.sandbox_configs.DeleteVariable(delete)
    # An agent's secret is none of these.
    [secret] = await set_all(runner, {"A": "b"}, agent_id=agent())
    stranger = secret.id.replace("agent-env-", "sandbox-env-")
    with fails(NotFound, "VARIABLE_NOT_FOUND"):
        await update(stranger, key="B")


async def test_a_lost_database_is_told_as_such(tool_url: str) -> None:
    async with await open_pool(tool_url, size=1) as pool:
        environments = TenantEnvironments(PostgresSandboxConfigs(pool), Vault(SEALER))
    with pytest.raises(Unavailable, match="cannot be reached"):
        await environments.of_call(UUID(int=1), UUID(int=2), None)


async def test_packages_of_settings_are_installed_where_there_are_any(runner: Service) -> None:
    config = await ensure(runner)
    install = wire.InstallSandboxPackagesRequest(id=config.id)
    assert (await runner.sandbox_configs.InstallSandboxPackages(install)).sandbox_config == config
    config_json = '{"npm_requirements": [{"name": "left-pad", "version": "1.3.0"}]}'
    await runner.sandbox_configs.UpdateSandboxConfig(
        wire.UpdateSandboxConfigRequest(id=config.id, config_json=config_json)
    )
    # This runner installs nothing.
    with fails(FailedPrecondition, "SANDBOX_UNAVAILABLE"):
        await runner.sandbox_configs.InstallSandboxPackages(install)
    with fails(NotFound, "SANDBOX_CONFIG_NOT_FOUND"):
        await runner.sandbox_configs.InstallSandboxPackages(wire.InstallSandboxPackagesRequest(id=f"sandbox-{uuid4()}"))
