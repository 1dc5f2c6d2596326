"""The files that a call is given: found when it is prepared, read when it is about to begin."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from services.common.errors import InvalidArgument
from services.common.ids import from_public, to_public
from services.tool_runner.core.job import MIB, File
from services.tool_runner.core.schemas.constraints import Schema
from services.tool_runner.executions.files.rules.names import INPUTS, input_paths
from services.tool_runner.executions.files.rules.references import file_references, replace_references
from services.tool_runner.executions.ports import FileStore

MOST_FILES = 64
MOST_BYTES = 64 * MIB


@dataclass(frozen=True, slots=True)
class CallFiles:
    """The arguments with paths in them, and the name of each file below /inputs. `problems`: sentences, or none."""

    arguments: dict[str, Any]
    names: Mapping[UUID, str]
    problems: tuple[str, ...] = ()


class Inputs:
    """Finds and reads the files of calls."""

    def __init__(self, store: FileStore) -> None:
        self._store = store

    async def find(
        self, organization_id: UUID, ids: tuple[UUID, ...], parameters: Schema, arguments: dict[str, Any]
    ) -> CallFiles:
        """Finds the files of a call; a call without files costs no statement."""
        file_ids, problems = list(ids), []
        for place, text in file_references(parameters, arguments):
            try:
                file_ids.append(from_public("execfile", text))
            except InvalidArgument as error:
                problems.append(f"{place}: must be the id of a file: {error.message}")
        if problems or not file_ids:
            return CallFiles(arguments, {}, tuple(problems))
        files = {file.id: file for file in await self._store.find(organization_id, file_ids)}
        missing = [file_id for file_id in dict.fromkeys(file_ids) if file_id not in files]
        problems = [f"there is no file {to_public('execfile', file_id)}" for file_id in missing[:5]]
        size = sum(file.size for file in files.values())
        if len(files) > MOST_FILES or size > MOST_BYTES:
            most = f"a call takes at most {MOST_FILES} files and {MOST_BYTES} bytes"
            problems.append(f"{most}, not {len(files)} files and {size} bytes")
        if problems:
            return CallFiles(arguments, {}, tuple(problems))
        names = input_paths(files[file_id] for file_id in file_ids)
        paths = {to_public("execfile", file_id): f"{INPUTS}/{name}" for file_id, name in names.items()}
        return CallFiles(replace_references(parameters, arguments, lambda text: paths[text.lower()]), names)

    async def read(self, organization_id: UUID, names: Mapping[UUID, str]) -> tuple[File, ...] | None:
        """Returns None where one of them has been erased meanwhile."""
        if not names:
            return ()
        contents = await self._store.contents(organization_id, list(names))
        if contents.keys() != names.keys():
            return None
        return tuple(File(name, contents[file_id]) for file_id, name in names.items())
