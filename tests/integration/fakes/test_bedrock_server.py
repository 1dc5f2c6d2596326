"""The fake Bedrock, seen through AWS's own client (botocore), in a thread of its own."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import botocore.config
import botocore.exceptions
import botocore.session
import pytest

from tests.fakes.bedrock_server import ACCESS_KEY, SECRET, BedrockServer
from tests.fakes.script import Reply, ToolCall, Usage

Client = Callable[..., Any]
CLAUDE = "us.anthropic.claude-haiku-4-5-20251001-v1:0"
HELLO: Any = [{"role": "user", "content": [{"text": "hello"}]}]
DICE: Any = {"tools": [{"toolSpec": {"name": "roll", "inputSchema": {"json": {"type": "object"}}}}]}


@pytest.fixture
def fake() -> Iterator[BedrockServer]:
    with BedrockServer(page=2).in_thread() as server:
        yield server


@pytest.fixture
def client(fake: BedrockServer) -> Iterator[Client]:
    """Makes clients of AWS's, which are closed at the end."""
    made: list[Any] = []
    once = botocore.config.Config(retries={"total_max_attempts": 1}, read_timeout=30)

    def make(service: str = "bedrock-runtime", **changes: Any) -> Any:
        keys = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET, **changes}
        session = botocore.session.Session()
        made.append(
            session.create_client(service, region_name="us-east-1", endpoint_url=fake.base_url, config=once, **keys)
        )
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_converse(fake: BedrockServer, client: Client) -> None:
    fake.reply(Reply(text="Hi", reasoning="hm", redacted="x", usage=Usage(10, 2, cached=4, cache_write=3)))
    answer = client().converse(modelId=CLAUDE, messages=HELLO)
    thought, hidden, text = answer["output"]["message"]["content"]
    assert thought["reasoningContent"]["reasoningText"] == {"text": "hm", "signature": "sig-of-the-fake"}
    assert hidden["reasoningContent"]["redactedContent"] == b"x"
    assert text == {"text": "Hi"}
    assert answer["stopReason"] == "end_turn"
    assert (answer["usage"]["inputTokens"], answer["usage"]["cacheReadInputTokens"]) == (10, 4)
    assert answer["ResponseMetadata"]["RequestId"] == "req-1"


def test_a_stream(fake: BedrockServer, client: Client) -> None:
    fake.reply(Reply(text="one two", calls=[ToolCall("roll", {"n": 6})]))
    stream = client().converse_stream(modelId=CLAUDE, messages=HELLO, toolConfig=DICE)["stream"]
    events = [next(iter(event.items())) for event in stream]
    assert [name for name, _ in events][:3] == ["messageStart", "contentBlockDelta", "contentBlockDelta"]
    assert [name for name, _ in events][-2:] == ["messageStop", "metadata"]
    pieces = [said["delta"] for name, said in events if name == "contentBlockDelta"]
    assert "".join(piece["text"] for piece in pieces if "text" in piece) == "one two"
    assert "".join(piece["toolUse"]["input"] for piece in pieces if "toolUse" in piece) == '{"n":6}'
    (start,) = [said["start"]["toolUse"] for name, said in events if name == "contentBlockStart"]
    assert start["name"] == "roll"


def test_an_exception_in_mid_stream(fake: BedrockServer, client: Client) -> None:
    fake.reply(Reply(text="a b c", error_after=2, message="It stopped."))
    stream = client().converse_stream(modelId=CLAUDE, messages=HELLO)["stream"]
    with closing(stream), pytest.raises(botocore.exceptions.EventStreamError, match="It stopped") as caught:
        list(stream)
    assert caught.value.response["Error"]["Code"] == "modelStreamErrorException"


@pytest.mark.parametrize(
    ("kind", "code", "status"),
    [
        ("authentication", "UnrecognizedClientException", 403),
        ("rate_limit", "ThrottlingException", 429),
        ("quota", "ServiceQuotaExceededException", 400),
        ("context_overflow", "ValidationException", 400),
        ("model_not_found", "ValidationException", 400),
        ("server", "InternalServerException", 500),
        ("overloaded", "ServiceUnavailableException", 503),
    ],
)
def test_errors(fake: BedrockServer, client: Client, kind: Any, code: str, status: int) -> None:
    fake.reply(Reply(error=kind))
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        client().converse(modelId=CLAUDE, messages=HELLO)
    assert caught.value.response["Error"]["Code"] == code
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status


def test_what_aws_refuses(client: Client) -> None:
    def refused(sender: Any, model: str = CLAUDE, **options: Any) -> str:
        with pytest.raises(botocore.exceptions.ClientError) as caught:
            sender.converse(modelId=model, **{"messages": HELLO, **options})
        return str(caught.value)

    right = client()
    assert "signature we calculated" in refused(client(aws_secret_access_key="another"))
    assert "security token" in refused(client(aws_access_key_id="another"))
    assert "identifier is invalid" in refused(right, "us.anthropic.claude-none")
    assert "on-demand throughput" in refused(right, "anthropic.claude-haiku-4-5-20251001-v1:0")
    use = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "roll", "input": {}}}]}
    result = {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [{"text": "4"}]}}]}
    assert "toolConfig field must be defined" in refused(right, messages=[*HELLO, use, result])
    assert "Expected toolResult" in refused(right, messages=[*HELLO, use, *HELLO], toolConfig=DICE)
    assert "must start with a user" in refused(right, messages=[use, result], toolConfig=DICE)
    assert "alternate" in refused(right, messages=[*HELLO, *HELLO])
    assert "blank" in refused(right, messages=[{"role": "user", "content": [{"text": " "}]}])
    llama = "meta.llama3-3-70b-instruct-v1:0"
    assert "toolChoice.any" in refused(right, llama, toolConfig={**DICE, "toolChoice": {"any": {}}})
    assert "prompt caching" in refused(right, llama, system=[{"text": "x"}, {"cachePoint": {"type": "default"}}])
    opus = "us.anthropic.claude-opus-5-5"
    assert "not supported for this model" in refused(right, opus, toolConfig={**DICE, "toolChoice": {"any": {}}})
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    assert "not supported for this model" in refused(right, opus, additionalModelRequestFields=thinking)


def test_an_arn_is_a_model_too(fake: BedrockServer, client: Client) -> None:
    arn = f"arn:aws:bedrock:us-east-1:123456789012:inference-profile/{CLAUDE}"
    fake.reply(Reply(text="Hi"))
    assert client().converse(modelId=arn, messages=HELLO)["output"]["message"]["content"] == [{"text": "Hi"}]


def test_counting(client: Client) -> None:
    sender = client()
    counted = sender.count_tokens(
        modelId="anthropic.claude-haiku-4-5-20251001-v1:0", input={"converse": {"messages": HELLO}}
    )
    assert counted["inputTokens"] > 0
    with pytest.raises(botocore.exceptions.ClientError, match="doesn't support counting tokens"):
        sender.count_tokens(modelId="amazon.nova-lite-v1:0", input={"converse": {"messages": HELLO}})


def test_lists(client: Client) -> None:
    control = client("bedrock")
    models = {one["modelId"]: one for one in control.list_foundation_models()["modelSummaries"]}
    assert models["amazon.titan-embed-text-v2:0"]["outputModalities"] == ["EMBEDDING"]
    pages = list(control.get_paginator("list_inference_profiles").paginate(typeEquals="SYSTEM_DEFINED"))
    assert len(pages) > 2
    profiles = [one["inferenceProfileId"] for page in pages for one in page["inferenceProfileSummaries"]]
    assert CLAUDE in profiles
    assert "a1b2c3d4e5f6" not in profiles
