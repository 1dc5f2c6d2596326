"""Environments: a real device on a real socket, the official client beside it, and the terminal client's own words."""

import json
import time
from typing import Any

import httpx
import pytest
from letta_client import APIStatusError
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.e2e.device import connected, joined, register
from tests.e2e.stack import Stack
from tests.polling import wait_until

AGENT = "agent-00000000-0000-4000-8000-0000000000aa"


def user(content: str = "Hello.") -> Any:
    """A message to a device."""
    return {"role": "user", "content": content, "client_message_id": f"cm-{content}"}


def test_a_device_from_its_registration_to_its_leaving(stack: Stack, client: Any) -> None:
    metadata = {"os": "linux", "lettaCodeVersion": "1.2.3", "mine": [1]}
    with connected(stack.url, "whole", connectionName="Ada's laptop", metadata=metadata) as device:
        found = client.environments.retrieve("whole")
        assert (found.device_id, found.connection_name, found.current_mode) == ("whole", "Ada's laptop", None)
        assert (found.connection_id, found.metadata.os, found.metadata.letta_code_version) == (
            device.connection_id,
            "linux",
            "1.2.3",
        )
        assert found.first_seen_at <= found.connected_at <= found.last_heartbeat <= time.time() * 1_000
        status = {
            "current_permission_mode": "acceptEdits",
            "current_working_directory": "/home/ada",
            "git_context": {"branch": "main"},
            "letta_code_version": None,
        }
        device.say(type="update_device_status", device_status=status)
        device.say(type="ping")
        assert device.hear() == {"type": "pong"}
        found = client.environments.retrieve("whole")
        assert (found.current_mode, found.metadata.git_branch) == ("acceptEdits", "main")
        assert (found.metadata.working_directory, found.metadata.os) == ("/home/ada", "linux")
        # What is not of its form is not kept, and the socket goes on.
        for mode in (["default"], {"mode": "default"}, 1):
            device.say(type="update_device_status", device_status={"current_permission_mode": mode})
        device.say(type="ping")
        assert device.hear() == {"type": "pong"}
    wait_until(lambda: client.environments.retrieve("whole").connection_id is None)
    left = client.environments.retrieve("whole")
    assert (left.connected_at, left.id) == (None, found.id)


def test_messages_are_pushed_in_order_and_come_again_until_they_are_acknowledged(stack: Stack, client: Any) -> None:
    with connected(stack.url, "again") as device:
        for content in ("one", "two", "three"):
            sent = client.environments.send_message(device.connection_id, messages=[user(content)], agent_id=AGENT)
            assert sent.success
            assert sent.message
        first, second, third = device.hear(), device.hear(), device.hear()
        assert first["type"] == "input"
        assert first["runtime"] == {"agent_id": AGENT, "conversation_id": "default"}
        assert first["payload"] == {"kind": "create_message", "messages": [user("one")]}
        device.acknowledge(second)
        device.acknowledge(second)
    with joined({"wsUrl": device.url}) as socket:
        assert [json.loads(socket.recv(30))["id"] for _ in "12"] == [first["id"], third["id"]]
        socket.send(json.dumps({"type": "ack", "id": first["id"]}))
        socket.send(json.dumps({"type": "ack", "id": third["id"]}))
        socket.send('{"type": "ping"}')
        assert json.loads(socket.recv(30)) == {"type": "pong"}
    # Over a new registration, too; what was acknowledged does not come.
    with connected(stack.url, "again") as device:
        device.say(type="ping")
        assert device.hear() == {"type": "pong"}


def test_a_device_that_acknowledges_nothing_has_got_what_was_sent_before_it_speaks(stack: Stack, client: Any) -> None:
    with connected(stack.url, "terminal", acknowledges=False) as device:
        client.environments.send_message(device.connection_id, messages=[user("one")])
        one = device.hear()
    # It left without a word.
    with joined({"wsUrl": device.url}, acknowledges=False) as socket:
        assert json.loads(socket.recv(30)) == one
        socket.send('{"type": "stream_delta"}')
        socket.send('{"type": "ping"}')
        assert json.loads(socket.recv(30)) == {"type": "pong"}
    with joined({"wsUrl": device.url}, acknowledges=False) as socket:
        socket.send('{"type": "ping"}')
        assert json.loads(socket.recv(30)) == {"type": "pong"}


def test_answers_to_calls_have_frames_of_their_own(stack: Stack, client: Any) -> None:
    approvals = [
        {"type": "approval", "tool_call_id": "call_1", "approve": True, "updated_input": {"a": 1}},
        {"type": "approval", "tool_call_id": "call_2", "approve": False, "reason": "No."},
        {"type": "tool", "tool_call_id": "call_3", "status": "success", "tool_return": "42", "stdout": ["x"]},
    ]
    messages: list[Any] = [user("one"), user("two"), {"type": "approval", "approvals": approvals}, user("three")]
    with connected(stack.url, "answers") as device:
        client.environments.send_message(
            device.connection_id, messages=messages, agent_id=AGENT, conversation_id="conv-1"
        )
        frames = [device.hear() for _ in range(5)]
        for frame in frames:
            device.say(type="ack", id=frame["id"])
    assert {frame["runtime"]["conversation_id"] for frame in frames} == {"conv-1"}
    said, allowed, denied, returned, more = [frame["payload"] for frame in frames]
    assert [each["content"] for each in said["messages"]] == ["one", "two"]
    assert allowed == {
        "kind": "approval_response",
        "request_id": "perm-call_1",
        "decision": {"behavior": "allow", "updated_input": {"a": 1}},
    }
    assert denied["decision"] == {"behavior": "deny", "message": "No."}
    assert (returned["kind"], returned["tool_return"], returned["stdout"]) == ("tool_return", "42", ["x"])
    assert [each["content"] for each in more["messages"]] == ["three"]


def test_who_is_not_connected_and_who_is_not_known(stack: Stack, client: Any) -> None:
    registered = register(stack.url, "absent")
    unknown = "connection-00000000-0000-4000-8000-0000000000aa"
    for connection_id, status in ((registered["connectionId"], 409), (unknown, 404), ("no id at all", 404)):
        with pytest.raises(APIStatusError) as raised:
            client.environments.send_message(connection_id, messages=[user()])
        assert raised.value.status_code == status
    with pytest.raises(APIStatusError) as raised:
        client.environments.retrieve("never-seen")
    assert raised.value.status_code == 404
    for connection_id in (unknown, "no-id-at-all", "%F0%9F%98%80" * 40):
        with connect(registered["wsUrl"].replace(registered["connectionId"], connection_id)) as socket:
            with pytest.raises(ConnectionClosed) as closed:
                socket.recv(30)
            # The terminal client registers anew when it is told this.
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1008


def test_who_registers_anew_takes_the_place_of_the_connection_before(stack: Stack, client: Any) -> None:
    with connected(stack.url, "twice") as before, connected(stack.url, "twice") as after:
        assert client.environments.retrieve("twice").connection_id == after.connection_id
        with pytest.raises(ConnectionClosed) as closed:
            before.hear()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008
        with pytest.raises(APIStatusError) as raised:
            client.environments.send_message(before.connection_id, messages=[user()])
        assert raised.value.status_code == 404
        client.environments.send_message(after.connection_id, messages=[user()])
        after.acknowledge(after.hear())
        # The same connection again: the newest socket has it.
        with joined({"wsUrl": after.url}) as newest:
            client.environments.send_message(after.connection_id, messages=[user()])
            assert json.loads(newest.recv(30))["type"] == "input"


def test_lists(stack: Stack, client: Any) -> None:
    with connected(stack.url, "list-1", source="local"), connected(stack.url, "list-2"):
        register(stack.url, "list-3")

        def names(**wanted: Any) -> list[str]:
            found = client.environments.list(limit="100", **wanted).connections
            return [each.device_id for each in found if each.device_id.startswith("list-")]

        assert names() == ["list-3", "list-2", "list-1"]
        assert names(online_only="true") == ["list-2", "list-1"]
        assert names(source="local") == ["list-1"]
        assert names(user_id="user-00000000-0000-4000-8000-000000000000") == names()
        assert names(user_id="user-00000000-0000-4000-8000-0000000000aa") == []
        page = client.environments.list(limit="1")
        assert (page.connections[0].device_id, page.has_next_page) == ("list-3", True)
        following = client.environments.list(limit="1", after=page.connections[0].id)
        assert following.connections[0].device_id == "list-2"
    answer = httpx.get(f"{stack.url}/v1/environments", params={"source": "elsewhere"}, timeout=30)
    assert answer.status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": []},
        {"messages": [{"role": "assistant", "content": "x", "client_message_id": "c"}]},
        {"messages": [{"role": "user", "content": "x"}]},
        {"messages": [{"role": "user", "content": [{"type": "image"}], "client_message_id": "c"}]},
        {"messages": [{"type": "approval", "approvals": []}]},
        {"messages": [{"type": "approval", "approvals": [{"tool_call_id": "c"}]}]},
        {"messages": ["x"]},
        {"messages": [5]},
        {"messages": [{"type": "approval", "approvals": ["x"]}]},
        {"messages": [user()] * 101},
        {"messages": [user("x" * 1_100_000)]},
        {"messages": [user()], "agentId": 5},
    ],
)
def test_messages_that_are_refused(stack: Stack, body: Any) -> None:
    url = f"{stack.url}/v1/environments/connection-00000000-0000-4000-8000-0000000000aa/messages"
    assert httpx.post(url, json=body, timeout=20).status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"deviceId": ""},
        {"deviceId": " "},
        {"deviceId": "x" * 257},
        {"deviceId": 5},
        {"deviceId": "x", "connectionName": ""},
        {"deviceId": "x", "source": "elsewhere"},
        {"deviceId": "x", "metadata": []},
        {"deviceId": "x", "metadata": {"a": "x" * 20_000}},
    ],
)
def test_registrations_that_are_refused(stack: Stack, body: Any) -> None:
    assert httpx.post(f"{stack.url}/v1/environments/register", json=body, timeout=30).status_code == 422


def test_frames_that_are_none_are_told_and_harm_nothing(stack: Stack, client: Any) -> None:
    with connected(stack.url, "babble") as device:
        for nonsense in ("no json", "[1]", '{"a": "\\u0000"}', '{"a":' * 200 + "1" + "}" * 200):
            device.socket.send(nonsense)
            assert device.hear()["type"] == "error"
        device.socket.send(b'{"type": "ping"}')
        assert device.hear() == {"type": "pong"}
        device.say(type="ack", id="no id")
        assert device.hear()["type"] == "error"
        device.say(type="something new", of={"a": "later release"})
        client.environments.send_message(device.connection_id, messages=[user()])
        device.acknowledge(device.hear())


def test_a_queue_has_an_end(stack: Stack, client: Any) -> None:
    with connected(stack.url, "full") as device:
        for _ in range(10):
            client.environments.send_message(
                device.connection_id,
                messages=[{"type": "approval", "approvals": [{"tool_call_id": "c", "approve": True}]}] * 100,
            )
        with pytest.raises(APIStatusError) as raised:
            client.environments.send_message(device.connection_id, messages=[user()])
        assert raised.value.status_code == 429
        frames = [device.hear() for _ in range(1_000)]
        device.acknowledge(frames[0])
        client.environments.send_message(device.connection_id, messages=[user()])
        assert device.hear()["payload"]["kind"] == "create_message"
