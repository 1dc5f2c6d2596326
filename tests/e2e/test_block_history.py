"""The history of a block end to end: what an agent's tools and the API did to it, and the way back and forth."""

from typing import Any

import httpx
import pytest
from letta_client import ConflictError

from tests.e2e.stack import Stack


def test_back_and_forth(stack: Stack) -> None:
    client = stack.client()
    agent = client.agents.create(
        memory_blocks=[{"label": "human", "value": "Nothing is known yet.", "tags": ["history", "e2e"]}],
        model="loci/demo",
    )
    block = agent.memory.blocks[0]
    first_value = block.value

    def get(path: str = "", **params: Any) -> httpx.Response:
        return httpx.get(f"{stack.url}/v1/blocks/{block.id}{path}", params=params, timeout=30)

    def post(path: str, **body: Any) -> httpx.Response:
        return httpx.post(f"{stack.url}/v1/blocks/{block.id}{path}", json=body or None, timeout=30)

    def done(response: httpx.Response) -> Any:
        assert response.status_code == 200, response.text
        return response.json()

    # One version by an agent's tool, one by the API.
    client.agents.messages.create(agent.id, input="My name is Ada.")
    told = client.blocks.retrieve(block.id).value
    assert "Ada" in told
    client.blocks.update(block.id, value=f"{told}\nLikes tea.", limit=2_000)
    api, tool, first = done(get("/versions"))
    assert [one["version"] for one in (api, tool, first)] == [3, 2, 1]
    assert (first["operation"], first["value"], tool["value"]) == ("create", first_value, told)
    assert (api["operation"], api["limit"], api["agent_id"], api["call_key"]) == ("set", 2_000, None, None)
    assert (tool["agent_id"], tool["actor_id"]) == (agent.id, api["actor_id"])
    assert all(tool[name] for name in ("run_id", "step_id", "call_key"))
    assert done(get("/versions", order="asc", after=1, limit=1)) == [tool]
    assert done(get("/versions", before=1, limit=1)) == [tool]
    assert done(get("/versions/2")) == done(get("/value", as_of=tool["created_at"])) == tool
    assert done(get("/value", as_of="2999-01-01")) == api
    assert done(get("/diff", from_version=2)) == {
        "diff": done(get("/diff", from_version=2, to_version=3))["diff"], "added_lines": 1, "removed_lines": 0,
    }  # fmt: skip
    assert done(get("/diff", from_version=2))["diff"].endswith("\n+Likes tea.")

    # Back, back, forth; an edit ends what can be redone, a new description does not.
    assert (done(post("/undo"))["value"], done(post("/undo"))["value"]) == (told, first_value)
    assert post("/undo").status_code == 409
    client.blocks.update(block.id, description="about the user")
    redone = post("/redo", expected_version=6)
    assert (done(redone)["value"], done(redone)["version"], redone.headers["etag"]) == (told, 7, '"7"')
    assert done(get("/versions/7"))["restored_version"] == 2
    assert post("/redo", expected_version=6).status_code == 409
    client.blocks.update(block.id, value="x", extra_headers={"If-Match": redone.headers["etag"]}, limit=5)
    with pytest.raises(ConflictError):
        client.blocks.update(block.id, value="y", extra_headers={"If-Match": redone.headers["etag"]})
    assert post("/redo").status_code == 409
    restored = done(post("/restore", as_of=tool["created_at"], expected_version=8))
    assert (restored["value"], restored["limit"], restored["version"]) == (told, 100_000, 9)
    assert done(post("/undo"))["value"] == "x"
    assert client.agents.blocks.retrieve("human", agent_id=agent.id).value == "x"

    # What is not there, and what makes no sense.
    assert get("/versions/99").status_code == 404
    assert get("/value", as_of="1999-01-01").status_code == 404
    for wrong in ({}, {"version": 1, "as_of": "2026-01-01"}, {"version": 0}):
        assert post("/restore", **wrong).status_code == 422
    assert httpx.patch(get().url, json={"value": "z"}, headers={"If-Match": "seven"}, timeout=30).status_code == 422

    # Lists find it by everything there is.
    filters: dict[str, Any] = {"tags": ["history", "other"], "connected_to_agents_count_gt": 0}
    assert [one.id for one in client.blocks.list(**filters, connected_to_agents_count_eq=[1, 2])] == [block.id]
    assert not list(client.blocks.list(**filters, match_all_tags=True))
    assert not list(client.blocks.list(tags=["history"], connected_to_agents_count_lt=1))
    assert httpx.get(f"{stack.url}/v1/blocks/count", timeout=30).json() >= 1
    client.agents.delete(agent.id)
