"""The tools with which agents read files: open_files, grep_files, semantic_search_files."""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing

from services.common.core.refusals import Refused
from services.memory.agent_files.model import FileRange, Opening
from services.memory.agent_tools.model import CallRecord, ToolCall
from services.memory.core.file_text.grep import (
    MOST_CONTEXT,
    Grep,
    compile_include,
    compile_pattern,
    render_result,
)
from services.memory.core.file_text.lookup import KnownFile, named, spellings
from services.memory.core.file_text.views import View
from services.memory.core.ports.agents import CallStore
from services.memory.core.ports.files import AgentFileStore
from services.memory.core.rules import JsonObject
from services.memory.core.tools.arguments import Arguments
from services.memory.passages.model import FoldersOfAgent, PassageQuery
from services.memory.search.service import PassageSearch, SearchResult

OPEN, GREP, SEARCH = "open_files", "grep_files", "semantic_search_files"
FILE_TOOLS = (OPEN, GREP, SEARCH)
# What a call of open_files shows of all its files together.
SHOWN_CHARS = 40_000
_LEAST_SHOWN = 500
_MOST_RESULTS = 50
_SUGGESTED = 300

# What is kept of a call that was answered so.
Record = Callable[[str], CallRecord]


class FileTools:
    """Runs these tools. `grep_seconds`: how long one search by a pattern may take."""

    def __init__(
        self, files: AgentFileStore, calls: CallStore, search: PassageSearch, *, grep_seconds: float = 5.0
    ) -> None:
        self._files = files
        self._calls = calls
        self._passages = search
        self._grep_seconds = grep_seconds

    async def apply(self, call: ToolCall, arguments: Arguments, record: Record) -> CallRecord:
        """Runs a call that was not run before, and keeps its record. Raises Refused, DuplicateCall."""
        if call.tool_name == OPEN:
            return await self._open(call, arguments, record)
        answer = await (self._grep(call, arguments) if call.tool_name == GREP else self._search(call, arguments))
        return await self._calls.record(call.organization_id, record(answer))

    async def _open(self, call: ToolCall, arguments: Arguments, record: Record) -> CallRecord:
        requests = [_request(each) for each in arguments.objects("file_requests", "file_name")]
        if not requests:
            raise Refused("TOOL_REFUSED", 'The argument "file_requests" is empty; name at least one file.')
        if len(requests) > call.limits.most_open:
            most = f"You may have at most {call.limits.most_open} files open at once"
            raise Refused("TOOL_REFUSED", f"{most}, and asked for {len(requests)}. Nothing was opened.")
        ranges = await self._ranges(call, requests)
        records: list[CallRecord] = []

        def keep(opening: Opening) -> CallRecord:
            records.append(record(_render_opening(opening)))
            return records[0]

        await self._files.open(
            call.organization_id,
            call.agent_id,
            ranges,
            call.limits,
            close_others=arguments.flag("close_all_others"),
            record=keep,
        )
        return records[0]

    async def _ranges(self, call: ToolCall, requests: Sequence[tuple[str, int, int | None]]) -> list[FileRange]:
        spelled = [spellings(name) for name, _, _ in requests]
        candidates = await self._files.named(call.organization_id, call.agent_id, sum(spelled, ()))
        known = {file.path for file in candidates} | {file.name for file in candidates}
        names = [next(filter(known.__contains__, each), each[0]) for each in spelled]
        others: list[str] = []
        if not known.issuperset(names):
            every = await self._files.files(call.organization_id, call.agent_id)
            others = [file.path for file in every[:_SUGGESTED]]
        ranges: dict[object, FileRange] = {}
        for name, (_, offset, length) in zip(names, requests, strict=True):
            # To find names like it takes a while, in which others shall be served.
            like_it = [one for one in candidates if name in (one.path, one.name)]
            file = await asyncio.to_thread(named, name, like_it, others) if others else named(name, like_it, others)
            if offset >= max(file.line_count, 1):
                count = f'"{file.path}" has {file.line_count} lines'
                raise Refused("TOOL_REFUSED", f"{count}; offset={offset} is behind the last.")
            last = None if length is None else min(offset + length, file.line_count)
            # Of two requests for one file the last counts.
            ranges[file.id] = FileRange(file.id, offset + 1, last)
        return list(ranges.values())

    async def _grep(self, call: ToolCall, arguments: Arguments) -> str:
        pattern, include = arguments.text("pattern"), arguments.optional_text("include")
        expression = compile_pattern(pattern, "pattern")
        include_pattern = None if not include else compile_include(include)
        grep = Grep(
            expression,
            context=min(max(arguments.integer("context_lines", 1), 0), MOST_CONTEXT),
            skip=max(arguments.integer("offset", 0), 0),
        )
        files = [
            file
            for file in await self._files.files(call.organization_id, call.agent_id)
            if file.has_text and (include_pattern is None or include_pattern.search(file.path) is not None)
        ]
        if not files:
            return f"[No file to search{' has a name like that' if include else ' is in your folders'}.]"
        looked, whole = await self._look(call, files, grep)
        return render_result(grep, pattern, looked=looked, files=len(files), whole=whole)

    async def _look(self, call: ToolCall, files: Sequence[KnownFile], grep: Grep) -> tuple[int, bool]:
        """Returns how many files were looked through, and whether that was all there is."""
        until = time.monotonic() + self._grep_seconds
        places = {file.id: place for place, file in enumerate(files)}
        looked = 0
        async with aclosing(self._files.pages(call.organization_id, files)) as groups:
            async for group in groups:
                pages = [(file.path, page) for file, page in group]
                # In a thread, for others to be served meanwhile.
                if not await asyncio.to_thread(grep.search, pages, until):
                    return looked, False
                if group:
                    looked = places[group[-1][0].id] + 1
        return len(files), True

    async def _search(self, call: ToolCall, arguments: Arguments) -> str:
        limit = min(max(arguments.integer("limit", 5), 1), _MOST_RESULTS)
        query = PassageQuery(text=arguments.text("query"), top_k=limit)
        result = await self._passages.search(call.organization_id, FoldersOfAgent(call.agent_id), query)
        keys = [(hit.passage.archive_id, hit.passage.id) for hit in result.hits]
        pieces = await self._files.pieces(call.organization_id, keys) if keys else {}
        results: list[JsonObject] = []
        for hit in result.hits:
            if (piece := pieces.get(hit.passage.id)) is not None:
                lines = f"{piece.first_line}-{piece.last_line}"
                results.append({"file_name": piece.path, "lines": lines, "text": hit.passage.text})
        return _render_results(results, result)


def _request(arguments: Arguments) -> tuple[str, int, int | None]:
    """Returns file name, lines to skip, lines to show. A length without an offset shows the whole file."""
    offset, length = arguments.optional_integer("offset"), arguments.optional_integer("length")
    if min(offset or 0, length or 0) < 0:
        raise Refused("TOOL_REFUSED", '"offset" and "length" count lines and are not negative.')
    return arguments.text("file_name"), offset or 0, None if offset is None else length or None


def _render_opening(opening: Opening) -> str:
    """Returns what the model reads: the files that are open now, their views, and the files closed for them.

    The prompt shows the views as well, but only from the next message on.
    """
    most = _share([len(view.text) for _, view in opening.opened])
    parts = ["\n".join(f"* Opened {path}{_range(view)}" for path, view in opening.opened)]
    parts += [f"{path}\n{_excerpt(path, view, most)}" for path, view in opening.opened]
    if opening.closed:
        parts.append(f"Closed: {', '.join(opening.closed)}.")
    return "\n\n".join(parts)


def _range(view: View) -> str:
    return "" if view.is_whole else f" (lines {view.first_line}-{view.last_line})"


def _share(sizes: Sequence[int]) -> int:
    """Returns how much each may show so that all together show SHOWN_CHARS: the longest lose first."""
    room = SHOWN_CHARS
    ordered = sorted(sizes)
    for place, size in enumerate(ordered):
        many = len(ordered) - place
        if size * many > room:
            return max(room // many, _LEAST_SHOWN)
        room -= size
    return SHOWN_CHARS


def _excerpt(path: str, view: View, most: int) -> str:
    if len(view.text) <= most:
        return view.text
    cut = view.text[:most].rpartition("\n")[0]
    last = view.first_line - 1 + cut.count("\n")
    return f"{cut}\n[This answer shows {path} up to line {last}; what follows is in view from the next message on.]"


def _render_results(results: Sequence[JsonObject], search: SearchResult) -> str:
    answer: JsonObject = {"count": len(results), "results": list(results)}
    if search.without_vectors:
        models = " and ".join(search.without_vectors)
        answer["note"] = f"{models} could not be reached, so this was found by words alone; other words may find more."
    return json.dumps(answer, ensure_ascii=False)
