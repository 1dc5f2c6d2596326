"""The parts of the suite: the short one that `make test` runs, and the long ones, each with what it is about.

A test belongs to one part, by the beginning of its id. `.ci/run` runs a long part when one of its subjects has changed
since everything passed last (.ci/proven). Needs the standard library alone: CI asks before anything is installed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

SHORT = "short"


@dataclass(frozen=True)
class Part:
    """A part of the long run."""

    name: str
    # Beginnings of the ids of its tests.
    tests: tuple[str, ...]
    # Folders (with a slash at the end) and globs of files.
    subjects: tuple[str, ...]
    # Whether it needs a container engine with the images of scripts/local-base and scripts/sandbox-image.
    engine: bool = False
    # Whether its tests look at the machine as a whole: which containers there are, which images an engine has.
    machine: bool = False


def _e2e(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/e2e/test_{name}.py" for name in names)


def _integration(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/integration/{name}" for name in names)


# What every test of a whole Loci stands on.
_STACK = ("cli/", "protos/", "services/common/", "tests/e2e/*.py", "tests/fakes/", "requirements/run.lock")

# The first that fits has a test; what fits none is short.
PARTS = (
    Part(
        "mcp_packages",
        tests=("tests/contract/tool_runner/test_mcp_packages.py", "tests/integration/tool_runner/test_mcp_examples.py"),
        subjects=(
            "services/tool_runner/mcp/",
            "services/tool_runner/mcp_servers/",
            "services/tool_runner/layers/",
            "services/tool_runner/sandboxes/bubblewrap/",
            "services/tool_runner/egress/",
            "tests/contract/tool_runner/published.py",
            "tests/e2e/npm-mcp-servers/",
            "tests/fakes/npm_mirror.py",
        ),
    ),
    Part(
        "sandboxes",
        tests=("tests/contract/tool_runner/",),
        subjects=(
            "services/tool_runner/core/",
            "services/tool_runner/egress/",
            "services/tool_runner/layers/",
            "services/tool_runner/sandboxes/",
            "services/tool_runner/mcp/",
            "requirements/sandbox.lock",
            "scripts/local-base",
            "scripts/sandbox-image",
            "k8s/sandbox-hosts/",
        ),
        engine=True,
        machine=True,
    ),
    Part(
        "images",
        tests=_e2e("images"),
        subjects=(
            "Dockerfile",
            ".dockerignore",
            "images/",
            "k8s/",
            "protos/",
            "requirements/",
            "scripts/",
            "gateway/__main__.py",
            "gateway/settings.py",
            "services/*/__main__.py",
            "services/*/settings.py",
            "services/*/migrations/",
            "services/common/",
            "tests/e2e/pods.py",
        ),
        engine=True,
        machine=True,
    ),
    Part(
        "cli",
        tests=("tests/integration/cli/",),
        subjects=("cli/", "services/*/__main__.py", "services/*/migrations/", "requirements/run.lock"),
    ),
    Part(
        "processes",
        tests=_integration(
            "fakes/",
            "llm_gateway/test_local_models.py",
            "llm_gateway/test_templates.py",
            "tool_runner/test_mcp_client.py",
            "tool_runner/test_node_network.py",
            "tool_runner/test_node_worker.py",
            "tool_runner/test_sandbox_parts.py",
            "tool_runner/test_schema_limits.py",
        ),
        subjects=(
            "services/llm_gateway/vendors/local/",
            "services/llm_gateway/vendors/text/template*.py",
            "services/tool_runner/child_processes/",
            "services/tool_runner/mcp/",
            "services/tool_runner/sandboxes/",
            "services/tool_runner/tools/",
            "tests/fakes/",
        ),
    ),
    Part(
        "deaths",
        tests=(
            "tests/integration/agent/turns/test_withstand_deaths.py",
            *_e2e("kill", "withstand", "busy"),
        ),
        subjects=("services/agent/", "services/common/", "cli/supervisor.py", "gateway/turns/", "tests/e2e/stack.py"),
    ),
    Part(
        "search",
        tests=(
            "tests/integration/memory/test_embedding_moves.py",
            "tests/integration/memory/test_fifty_writers.py",
            "tests/integration/memory/test_ingestion.py",
            "tests/integration/memory/test_memory_score.py",
            "tests/integration/memory/test_vector_search.py",
            "tests/integration/agent/recall/test_recall_vectors.py",
            *_e2e("embedding_changes", "message_search"),
        ),
        subjects=(
            "services/memory/",
            "services/agent/recall/",
            "services/agent/core/recall/",
            "services/common/core/",
            "services/common/vector*.py",
        ),
    ),
    Part(
        "clients",
        tests=(
            "tests/e2e/sdk_methods/test_node_methods.py",
            *_e2e(
                "behind_nginx",
                "client_calls",
                "grpc_clients",
                "letta_code",
                "npm_client",
                "streams_to_clients",
                "terminal_device",
            ),
        ),
        subjects=(
            *(*_STACK, "gateway/", "docs/proxy.md"),
            *("tests/e2e/npm/", "tests/e2e/npm-letta-code/", "tests/e2e/typescript/"),
        ),
    ),
    Part(
        "programs",
        tests=_e2e("programs"),
        subjects=(
            *_STACK,
            "gateway/",
            "tests/e2e/programs/",
            "tests/e2e/npm-letta-code/",
            "tests/e2e/npm-letta-code-sdk/",
        ),
    ),
    Part(
        "ade",
        tests=("tests/e2e/ade/",),
        subjects=(*_STACK, "ade/", "gateway/", "scripts/ade.py", "tests/e2e/ade/"),
    ),
    Part("rest", tests=("tests/e2e/rest/",), subjects=(*_STACK, "gateway/")),
    Part(
        "moving",
        tests=_e2e("moving_in", "moving_many"),
        subjects=("cli/importing/", "services/*/migrations/", "tests/letta_*.py", "tests/fixtures/"),
    ),
    Part(
        "tools",
        tests=_e2e("mcp_servers", "secrets", "tool_client", "tool_returns", "tools_guide", "trace"),
        subjects=(*_STACK, "services/tool_runner/", "gateway/mcp_api/", "docs/tools.md", "tests/e2e/npm-mcp/"),
    ),
    Part(
        "models",
        tests=_e2e(
            *("fallbacks", "local_models", "openai_responses", "pictures", "providers", "reasoners", "record_replay"),
            *("usage", "vendors"),
        ),
        subjects=(*_STACK, "services/llm_gateway/", "gateway/openai_api/", "gateway/vendors/"),
    ),
    # Each other module of whole stacks, those that come to be, too.
    Part(
        "e2e",
        tests=("tests/e2e/",),
        subjects=(
            *(*_STACK, "gateway/", "services/agent/", "services/memory/"),
            *("docs/tutorial.md", "docs/concepts.md", "docs/clients/"),
        ),
    ),
)

# Of the folders and modules above, what is short all the same: a turn through all services, and one death of each kind.
_SHORT_TOO = re.compile(
    r"tests/e2e/test_(walk|turns|conversations|agent_settings|approvals|runs|tool_calls|files|archives|openai_sdk"
    r"|bad_input)\.py"
    r"|tests/e2e/sdk_methods/test_methods\.py"
    r"|tests/e2e/test_kill\.py::test_killed_during_a_three_step_turn\[(agent-|[a-z]+-agent\])"
    r"|tests/integration/agent/turns/test_withstand_deaths\.py::(?!test_death\[)"
    r"|tests/integration/agent/turns/test_withstand_deaths\.py::test_death\[[^\]]+-2-after\]"
)
# Modules of which two parts have tests.
SPLIT = ("tests/e2e/test_kill.py", "tests/integration/agent/turns/test_withstand_deaths.py")

# Tests that run tool code (`pytest.mark.sandbox`) do so in bubblewrap; this part has them once more, with containers.
AGAIN = Part(
    "containers",
    tests=("tests/e2e/",),
    subjects=("services/tool_runner/sandboxes/", "scripts/sandbox-image", "requirements/sandbox.lock"),
    engine=True,
)

# Whatever a part is about, this may break it.
EVERY = ("requirements/dev.lock", "tests/conftest.py", "tests/postgres.py", "tests/suite/parts.py")


def all_names() -> tuple[str, ...]:
    """Returns the names of the long parts."""
    return (*(part.name for part in PARTS), AGAIN.name)


def part_of(node_id: str) -> str:
    """Returns the name of the part that has this test. Of the file of a test: that of the file."""
    if not _SHORT_TOO.match(node_id):
        for part in PARTS:
            if node_id.startswith(part.tests):
                return part.name
    return SHORT


def parts_of_file(path: str) -> set[str]:
    """Returns the names of the parts that have tests of this file."""
    return {part_of(path)} | ({SHORT} if path in SPLIT else set())


def is_machine(node_id: str) -> bool:
    """Returns whether a test looks at the machine as a whole."""
    name = part_of(node_id)
    return any(part.machine and part.name == name for part in PARTS)


def asked_for(changed: Collection[str]) -> list[str]:
    """Returns the names of the long parts of which a changed file is a subject or a test."""
    return [part.name for part in (*PARTS, AGAIN) if any(_is_about(part, path) for path in changed)]


def need_engine(names: Iterable[str]) -> list[str]:
    """Returns those of the named parts that need a container engine."""
    return [part.name for part in (*PARTS, AGAIN) if part.engine and part.name in names]


def _is_about(part: Part, path: str) -> bool:
    own = part is not AGAIN and part.name in parts_of_file(path) and "/test_" in path
    return own or any(fits(path, subject) for subject in (*EVERY, *part.subjects))


def fits(path: str, subject: str) -> bool:
    """Returns whether a path is that subject, or in that folder; a star stands for any text."""
    return fnmatchcase(path, f"{subject}*" if subject.endswith("/") else subject)
