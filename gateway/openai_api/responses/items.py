"""The output of a response: its items, and the events that tell of them while they grow. Pure."""

from collections.abc import Iterable
from typing import Any

from gateway.openai_api.chat import ChunkDeltas
from gateway.openai_api.responses.requests import call_id_of
from gateway.rest.convert import Rest

_ADDED, _DONE = "response.output_item.added", "response.output_item.done"


class OutputItems:
    """The items of one response, made of the deltas of `ChunkDeltas`: texts, thoughts and calls, each an item."""

    def __init__(self, bare_id: str) -> None:
        """`bare_id`: that of the run."""
        self._bare_id = bare_id
        self.items: list[Rest] = []
        # The kind and the number of the call of the item that grows.
        self._open: tuple[str, int] | None = None

    def add(self, delta: Rest) -> list[Rest]:
        """Returns the events of a delta."""
        events: list[Rest] = []
        if text := delta.get("reasoning_content"):
            events += [*self._turn_to("reasoning"), *self._grow("summary", "reasoning_summary_text", text)]
        if text := delta.get("content"):
            events += [*self._turn_to("message"), *self._grow("content", "output_text", text)]
        for call in delta.get("tool_calls") or ():
            function = call["function"]
            if self._open != ("function_call", call["index"]):
                call_id = call_id_of(call["id"], self._bare_id)
                events += self._turn_to(
                    "function_call", call["index"], call_id=call_id, name=function.get("name") or ""
                )
            events += self._arguments(function.get("arguments") or "")
        return events

    def close(self) -> list[Rest]:
        """Returns the events of the end of the item that grows."""
        if self._open is None:
            return []
        kind, self._open = self._open[0], None
        item = self.items[-1]
        match kind:
            case "message":
                part, name, part_name = item["content"][0], "output_text", "content_part"
                place = {"content_index": 0}
            case "reasoning":
                part, name, part_name = item["summary"][0], "reasoning_summary_text", "reasoning_summary_part"
                place = {"summary_index": 0}
            case _:
                item["status"] = "completed"
                done = {"arguments": item["arguments"], "name": item["name"]}
                return [self._event("function_call_arguments.done", **done), self._item_event(_DONE)]
        if kind == "message":
            item["status"] = "completed"
        text = {"text": part["text"]} | ({"logprobs": []} if kind == "message" else {})
        return [
            self._event(f"{name}.done", **place, **text),
            self._event(f"{part_name}.done", **place, part=dict(part)),
            self._item_event(_DONE),
        ]

    def _turn_to(self, kind: str, number: int = 0, **fields: Any) -> list[Rest]:
        """Returns the events of another item's beginning; none where it is the one that grows."""
        if self._open == (kind, number):
            return []
        events = self.close()
        self._open = (kind, number)
        place = len(self.items)
        match kind:
            case "message":
                item: Rest = {"id": f"msg_{self._bare_id}_{place}", "type": kind, "status": "in_progress"}
                item |= {"role": "assistant", "content": []}
                part, added = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}, "content_part"
            case "reasoning":
                item = {"id": f"rs_{self._bare_id}_{place}", "type": kind, "summary": []}
                part, added = {"type": "summary_text", "text": ""}, "reasoning_summary_part"
            case _:
                item = {"id": f"fc_{self._bare_id}_{place}", "type": kind, "status": "in_progress", "arguments": ""}
                self.items.append(item | fields)
                return [*events, self._item_event(_ADDED)]
        self.items.append(item)
        events.append(self._item_event(_ADDED))
        index = {"content_index": 0} if kind == "message" else {"summary_index": 0}
        item["content" if kind == "message" else "summary"] = [part]
        return [*events, self._event(f"{added}.added", **index, part=dict(part))]

    def _grow(self, member: str, name: str, text: str) -> list[Rest]:
        self.items[-1][member][0]["text"] += text
        more = {"content_index": 0, "logprobs": []} if member == "content" else {"summary_index": 0}
        return [self._event(f"{name}.delta", **more, delta=text)]

    def _arguments(self, text: str) -> list[Rest]:
        self.items[-1]["arguments"] += text
        return [self._event("function_call_arguments.delta", delta=text)] if text else []

    def _event(self, name: str, /, **fields: Any) -> Rest:
        place = {"item_id": self.items[-1]["id"], "output_index": len(self.items) - 1}
        return {"type": f"response.{name}"} | place | fields

    def _item_event(self, name: str) -> Rest:
        # A copy: the item goes on to grow.
        return {"type": name, "output_index": len(self.items) - 1, "item": _copy(self.items[-1])}


def output(bare_id: str, contents: Iterable[Rest]) -> list[Rest]:
    """Returns the items of a turn that has ended, of its messages in the form of the REST API."""
    deltas, items = ChunkDeltas(), OutputItems(bare_id)
    for content in contents:
        for delta in deltas.deltas(content):
            items.add(delta)
    items.close()
    return items.items


def _copy(item: Rest) -> Rest:
    return {name: [dict(part) for part in value] if isinstance(value, list) else value for name, value in item.items()}
