"""What the service does against what its protos say."""

import re
from pathlib import Path

import pytest
from google.protobuf.descriptor import ServiceDescriptor

from loci.memory.v1 import agent_memory_service_pb2 as agent_pb
from loci.memory.v1 import archive_service_pb2, block_pb2, passage_pb2, passage_service_pb2
from loci.memory.v1 import block_service_pb2 as block_pb
from services.common.core.paging import MOST
from services.common.fields import When, settable_fields
from services.memory.agent_tools.service import TOOL_NAMES
from services.memory.agents.servicer import AgentMemoryServicer
from services.memory.archives.servicer import ArchiveServicer
from services.memory.blocks.convert import block_changes
from services.memory.blocks.model import DEFAULT_LIMIT, LARGEST_LIMIT, LONGEST_LABEL, Operation
from services.memory.blocks.servicer import BlockServicer
from services.memory.passages import model as passages
from services.memory.passages.servicer import PassageServicer
from services.tool_runner.builtin import BUILTIN_TOOLS
from services.tool_runner.core.model import ToolType

PROTOS = Path(__file__).parents[3] / "protos" / "loci" / "memory" / "v1"
SERVICES: list[tuple[ServiceDescriptor, type]] = [
    (agent_pb.DESCRIPTOR.services_by_name["AgentMemoryService"], AgentMemoryServicer),
    (archive_service_pb2.DESCRIPTOR.services_by_name["ArchiveService"], ArchiveServicer),
    (block_pb.DESCRIPTOR.services_by_name["BlockService"], BlockServicer),
    (passage_service_pb2.DESCRIPTOR.services_by_name["PassageService"], PassageServicer),
]


@pytest.mark.parametrize(("service", "servicer"), SERVICES)
def test_every_method_is_served(service: ServiceDescriptor, servicer: type) -> None:
    ours = [owner for owner in servicer.__mro__ if owner.__module__.startswith("services.")]
    assert {method.name for method in service.methods} <= {name for owner in ours for name in vars(owner)}


def test_search_modes_have_the_protos_numbers() -> None:
    modes = {f"SEARCH_MODE_{mode.name}": mode.value for mode in passages.SearchMode}
    assert modes | {"SEARCH_MODE_UNSPECIFIED": 0} == dict(passage_pb2.SearchMode.items())


def test_operations_are_stored_under_the_protos_numbers() -> None:
    stored = {f"BLOCK_OPERATION_{operation.name}": operation.value for operation in Operation}
    assert stored | {"BLOCK_OPERATION_UNSPECIFIED": 0} == dict(block_pb2.BlockOperation.items())


def test_every_field_of_a_draft_can_be_updated() -> None:
    names = [field.wire for field in settable_fields(block_pb2.Block.DESCRIPTOR, When.CREATION).values()]
    assert len(block_changes(block_pb2.Block(), names)) == len(names)


def test_the_figures_of_the_comments_are_those_of_the_code() -> None:
    text = " ".join(path.read_text(encoding="utf-8") for path in sorted(PROTOS.glob("*.proto")))
    for sentence in (
        f"1 to {LONGEST_LABEL} characters",
        f"1 to {LARGEST_LIMIT:,}. Default {DEFAULT_LIMIT:,}",
        f"1 to {passages.LONGEST_TEXT:,} characters",
        f"1 to {passages.LONGEST_QUERY:,} characters",
        f"1 to {passages.MOST_RESULTS:,}; default 5",
    ):
        assert sentence in text
    assert f"1 to {MOST:,}" in (PROTOS.parents[1] / "common" / "v1" / "page.proto").read_text(encoding="utf-8")
    [tools] = re.findall(r"// (memory_insert, [^.]*)\.\n  string tool_name", text)
    assert set(re.findall(r"\w+", tools)) == set(TOOL_NAMES)


def test_every_memory_tool_of_the_catalogue_is_run_here() -> None:
    """By the types that the agent service sends here; these two it answers itself."""
    types = {
        ToolType.LETTA_CORE,
        ToolType.LETTA_FILES_CORE,
        ToolType.LETTA_MEMORY_CORE,
        ToolType.LETTA_SLEEPTIME_CORE,
        ToolType.LETTA_VOICE_SLEEPTIME_CORE,
    }
    listed = {tool.name for tool in BUILTIN_TOOLS if tool.tool_type in types}
    assert listed - {"conversation_search", "send_message"} == set(TOOL_NAMES)
