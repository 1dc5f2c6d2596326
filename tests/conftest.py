"""Fixtures that every test may use: a real Postgres, the spans of a test; and what holds for a whole run.

A test that needs a database asks for `database_url`:

    async def test_blocks(database_url: DatabaseUrl) -> None:
        pool = await open_pool(database_url("memory"), size=2)

`database_url(service)` is a URL to a database of the test module's own, logged in as that service's role,
with the roles, schemas and `vector` extension exactly as `loci run` makes them, and no tables yet. All
services of a module share its database. `migrated_url(service)` is another one with the tables of all services.
`fresh_database_url(service)` gives a new database at every call (25 ms). `postgres` is the server itself.
The server starts at the first use in a session (0.8 s) and is gone, with its folder, at the end.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import hypothesis
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from services.common import telemetry
from services.tool_runner.sandboxes.bubblewrap.cgroups import find_cgroups
from tests.postgres import Postgres

pytest_plugins = [
    "tests.skip_table",
    "tests.standstill",
    "tests.workers",
    "tests.suite.requirements",
    "tests.suite.results",
    "tests.suite.selection",
]

# The same examples by hand and in CI. `make test-all` tries others, and says how to have the same ones again.
hypothesis.settings.register_profile("same", deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("random", deadline=None, database=None, print_blob=True)
hypothesis.settings.load_profile("same")

DatabaseUrl = Callable[[str], str]
MigratedUrl = Callable[[str], str]


def pytest_collection_finish() -> None:
    """Takes what was collected, a million objects, out of the search for garbage. They are there to the end, and a look
    through them takes half a second, in which some test's timeout runs out."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Removes the control groups that sandboxes left whose processes were killed."""
    if not hasattr(session.config, "workerinput") and (groups := find_cgroups()):
        groups.reap()


@pytest.fixture(scope="module", autouse=True)
def _nothing_unclosed() -> Iterator[None]:
    """What a module forgot to close is found at its end, and fails its last test instead of a stranger's."""
    yield
    gc.collect()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The session's Postgres: `.url(role, database)`, `.superuser_url(database)`, `.create_database()`."""
    with Postgres.started() as server:
        yield server


@pytest.fixture(scope="module")
def database_url(postgres: Postgres) -> Iterator[DatabaseUrl]:
    """`database_url("memory")`: the module's own database as that service's role."""
    name = postgres.create_database()
    yield lambda service: postgres.service_url(service, name)
    postgres.drop_database(name)


@pytest.fixture(scope="module")
def migrated_url(postgres: Postgres) -> Iterator[MigratedUrl]:
    """`migrated_url("memory")`: another database of the module's own, with every service's tables, as that role."""
    name = postgres.create_database(postgres.migrated_template())
    yield lambda service: postgres.service_url(service, name)
    postgres.drop_database(name)


@pytest.fixture
def fresh_database_url(postgres: Postgres) -> Iterator[DatabaseUrl]:
    """`fresh_database_url("memory")`: a new, empty database at every call."""
    names: list[str] = []

    def make(service: str) -> str:
        names.append(postgres.create_database())
        return postgres.service_url(service, names[-1])

    yield make
    for name in names:
        postgres.drop_database(name)


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """The spans that end in this process during the test: `spans.get_finished_spans()`."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry.install(provider)
    yield exporter
    telemetry.install(None)
