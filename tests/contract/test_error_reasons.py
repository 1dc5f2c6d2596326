"""Every reason that code raises or a proto promises is documented in protos/loci/common/v1/error.proto."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import grpc

from loci.common.v1.error_pb2 import ErrorReason

REPOSITORY = Path(__file__).parents[2]
DOCUMENTED = {name.removeprefix("ERROR_REASON_") for name in ErrorReason.keys()}  # noqa: SIM118 - an enum, no dict
STATUSES = {code.name for code in grpc.StatusCode}
REASON = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
PROMISE = re.compile(rf"\b(?:{'|'.join(STATUSES)}) \(([A-Z_, ]+)")


def raised(source: str) -> Iterator[str]:
    """`reason="..."` of calls, and `reason_name = "..."` of classes."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.keyword(arg="reason", value=ast.Constant(value=str(reason))):
                yield reason
            case ast.Assign(targets=[ast.Name(id="reason_name")], value=ast.Constant(value=str(reason))):
                yield reason


def test_reasons_in_code_are_documented() -> None:
    sources = sorted((REPOSITORY / "services").rglob("*.py"))
    missing = {
        f"{path.relative_to(REPOSITORY)}: {reason}"
        for path in sources
        for reason in raised(path.read_text(encoding="utf-8"))
        if REASON.fullmatch(reason) and reason not in DOCUMENTED | STATUSES
    }
    assert sources
    assert missing == set()


def test_reasons_in_protos_are_documented() -> None:
    promised = {
        f"{path.name}: {reason}"
        for path in (REPOSITORY / "protos").rglob("*.proto")
        for found in PROMISE.finditer(path.read_text(encoding="utf-8"))
        for reason in re.split(r"[, ]+", found[1])
        if REASON.fullmatch(reason) and reason not in DOCUMENTED | STATUSES
    }
    assert promised == set()
