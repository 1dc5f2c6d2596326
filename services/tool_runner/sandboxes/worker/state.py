"""The globals of tools beside their arguments: `agent_state`, an agent as its JSON has it, and `client`."""

import importlib
import json
import os
from typing import Any

Edits = list[tuple[str, str]]


class Record(dict[str, Any]):
    """An object of JSON, readable as attributes and as items; still JSON for json.dumps."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class Memory(Record):
    """The blocks, with the methods that tools written for the reference use."""

    def get_block(self, label: str) -> Record:
        """Raises KeyError where no block has the label."""
        for block in self["blocks"]:
            if block["label"] == label:
                found: Record = block
                return found
        there = ", ".join(self.list_block_labels())
        raise KeyError(f"Block field {label} does not exist (available sections = {there})")

    def get_blocks(self) -> list[Record]:
        """Returns all of them."""
        return list(self["blocks"])

    def list_block_labels(self) -> list[str]:
        """Returns the labels of all blocks."""
        return [block["label"] for block in self["blocks"]]

    def update_block_value(self, label: str, value: str) -> None:
        """Replaces what a block holds. Raises KeyError, ValueError."""
        if not isinstance(value, str):
            raise ValueError("Provided value must be a string")  # noqa: TRY004 - as the reference does
        self.get_block(label)["value"] = value


class State:
    """`value` is what the tool gets; None where the call has no state."""

    def __init__(self, text: str) -> None:
        self.value: Record | None = _agent(json.loads(text, object_hook=Record)) if text else None
        self._before = self._values()

    def edits(self) -> Edits:
        """Returns (label, value) of the blocks whose value is another than before."""
        now = self._values()
        return [(label, now[label]) for label, old in self._before.items() if now.get(label, old) != old]

    def _values(self) -> dict[str, str]:
        blocks = self.value["memory"]["blocks"] if self.value else []
        return {block["label"]: str(block.get("value") or "") for block in blocks if "label" in block}


def _agent(fields: Record) -> Record:
    """Returns the agent with its blocks under `memory` and at the top, the same ones."""
    memory = fields.get("memory") or {}
    blocks = memory.get("blocks") or fields.get("blocks") or []
    fields["memory"] = Memory(memory, blocks=blocks)
    fields["blocks"] = blocks
    return fields


class Client:
    """`client` of the tool's module: the Letta SDK's, made when it is first used."""

    def __getattr__(self, name: str) -> Any:
        if "made" not in self.__dict__:
            self.__dict__["made"] = _client()
        return getattr(self.__dict__["made"], name)


def _client() -> Any:
    try:
        package = importlib.import_module("letta_client")
    except ImportError as error:
        missing = "`client` needs the package letta-client, which is not in this sandbox"
        raise RuntimeError(f"{missing}: add letta-client to the tool's pip_requirements") from error
    return package.Letta(base_url=os.environ.get("LETTA_BASE_URL"), api_key=os.environ.get("LETTA_API_KEY"))
