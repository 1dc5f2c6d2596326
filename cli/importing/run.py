"""The process of `loci import`."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import asyncpg

from cli.errors import CliError
from cli.importing.encryption import Keyring
from cli.importing.report import Report
from cli.importing.schema import REVISION
from cli.importing.source import Source
from cli.importing.steps import agents, groups, integrations, memory, remainder, tools
from cli.importing.steps.common import Import
from cli.importing.target import DEFAULT, Loci, connect, describe
from loci.agent.v1 import access_service_pb2
from loci.common.v1.page_pb2 import PageRequest
from services.common.errors import LociError

Step = Callable[[Import], Awaitable[None]]
# Each refers only to what comes before it.
STEPS: tuple[tuple[str, Step], ...] = (
    ("providers", integrations.providers),
    ("mcp servers", integrations.mcp_servers),
    ("sandboxes", integrations.sandboxes),
    ("tools", tools.tools),
    ("blocks", memory.blocks),
    ("archives", memory.archives),
    ("folders", memory.folders),
    ("agents", agents.agents),
    ("identities", groups.identities),
    ("groups", groups.groups),
    ("everything else", remainder.remainder),
)
_KEY = "LETTA_ENCRYPTION_KEY"


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The command line. `organization`: of the old server; `into`: the tenant here, empty: the default one."""

    postgres: str
    encryption_key: str = ""
    organization: str = ""
    into: str = ""
    report: str = ""
    dry_run: bool = False


def run(options: ImportOptions) -> None:
    """Imports everything and prints the report. Raises CliError; then the same command goes on where it stopped."""
    report = Report(dry_run=options.dry_run)
    try:
        asyncio.run(_run(options, os.environ, report))
    finally:
        print(report.table(), flush=True)
        if options.report:
            report.write(Path(options.report))


async def _run(options: ImportOptions, environment: Mapping[str, str], report: Report) -> None:
    try:
        tenant = UUID(options.into[-36:]) if options.into else DEFAULT
    except ValueError:
        raise CliError(f"--into must be an organization's id, not {options.into!r}", code=2) from None
    keyring = Keyring(options.encryption_key or environment.get(_KEY, ""))
    async with Source.open(options.postgres) as source, connect(environment, tenant) as loci:
        revision, organization = await source.revision(), await source.choose_organization(options.organization)
        if revision != REVISION:
            print(f"the old database is of revision {revision or 'unknown'}, not {REVISION}: what it lacks is left out")
        print(f"importing {organization or 'everything'} into org-{tenant}", flush=True)
        if options.into:
            await _check_tenant(loci, f"org-{tenant}")
        job = Import(source, loci, keyring, report, options.dry_run, progress=_say)
        for name, step in STEPS:
            print(f"{name} ...", flush=True)
            try:
                await step(job)
            except LociError as error:
                raise CliError(f"{name}: {describe(error)}; {_AGAIN}") from None
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
                raise CliError(f"{name}: the old database failed: {error}; {_AGAIN}") from None
    report.complete = True


async def _check_tenant(loci: Loci, organization_id: str) -> None:
    """Checks that the tenant exists: its callers see it alone, the default tenant's see all. Raises CliError."""
    request = access_service_pb2.ListOrganizationsRequest(page=PageRequest(page_size=1_000))
    try:
        organizations = (await loci.call(loci.access.ListOrganizations, request)).organizations
    except LociError as error:
        raise CliError(f"the organizations here cannot be read: {describe(error)}") from None
    if organization_id not in {one.id for one in organizations}:
        raise CliError(f"there is no organization {organization_id} here; make one first (loci orgs)", code=2)


_AGAIN = "run the same command again, it goes on where it stopped"


def _say(line: str) -> None:
    print(f"  {line}", flush=True)
