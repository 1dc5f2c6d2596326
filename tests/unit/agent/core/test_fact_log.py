"""Facts as they are stored: every one comes back as it was, and those of the release before are read."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import orjson
import pytest

from services.agent.core.fact_log import (
    from_row,
    options_from_json,
    options_to_json,
    settings_from_body,
    settings_to_json,
    to_row,
)
from services.agent.core.facts import (
    SCHEMA_VERSION,
    ClientSkill,
    ClientTool,
    Compacted,
    ContextOverflowed,
    Fact,
    Failure,
    MemberSpoke,
    ModelFailed,
    ModelReplied,
    Options,
    Reminded,
    RunEnded,
    Settings,
    StopReason,
    ToolsReturned,
    Usage,
    UserSpoke,
)
from services.agent.core.messages import Decision, Message, Return, Text
from services.agent.core.rules.tool_rules import (
    Children,
    Conditional,
    ContinueLoop,
    ExitLoop,
    MaxCount,
    ParentLast,
    RequiredBeforeExit,
    RequiresApproval,
    RunFirst,
)
from services.agent.core.window.compaction import CompactionStats, Trigger
from services.agent.postgres.rows import input_rows, message_from_row, message_rows
from tests.unit.agent.playing import NOW, call, message

RULES = (
    RunFirst("a", {"x": [1, None]}),
    Children("a", ("b", "c"), {"b": {"x": 1}}),
    ParentLast("a", ("b",)),
    Conditional("a", {"true": "b"}, "c", require_output_mapping=True),
    MaxCount("a", 3),
    ContinueLoop("a"),
    ExitLoop("b"),
    RequiredBeforeExit("c"),
    RequiresApproval("a", 60.0, "approve"),
)
OPTIONS = Options(
    max_steps=7,
    model="anthropic/claude-haiku-4-5",
    context_window_limit=9_000,
    system="Be brief.",
    client_tools=(ClientTool("mine", "What I do.", {"type": "object", "properties": {"x": {}}}), ClientTool("bare")),
    client_skills=(ClientSkill("sail", "How to sail.", "/skills/sail"), ClientSkill("row")),
    compact={"mode": "all"},
    return_logprobs=True,
    top_logprobs=3,
    return_token_ids=True,
    include_trace=True,
    callback_url="https://example.org/done",
    websocket=True,
    response_format={"type": "json_object"},
    first_call="mine",
    parallel_tool_calls=False,
    stop=("END", "\n"),
    instructions="Answer in French.",
)
# As a run has them: what the request asks for is in its place.
SETTINGS = Settings(
    3,
    "anthropic/claude-haiku-4-5",
    "loci/hash",
    "Be brief.",
    9_000,
    agent_type="memgpt_agent",
    tool_ids=(UUID(int=1), UUID(int=2)),
    tool_rules=RULES,
    timezone="Europe/Berlin",
    model_settings={"temperature": 0.5, "reasoning": {"effort": "low"}},
    # That of the request; the agent's is another.
    response_format={"type": "json_object"},
    compaction_settings={"mode": "all"},
    message_buffer_autoclear=True,
    recall_passages=4,
    options=OPTIONS,
)
FAILURE = Failure(StopReason.LLM_API_ERROR, "llm_timeout", "It took too long.", "after=60", "LLM_TIMEOUT")
STATS = CompactionStats(Trigger.POST_STEP_CONTEXT_CHECK, 9, 8, 7, 6, 5)
USAGE = Usage(10, 2, 3, 0, 1)
SUMMARY = message(4, "summary", Text("so far"))

FACTS: list[Fact] = [
    UserSpoke(SETTINGS, (message(1, "user", Text("hi")), message(2, "user", Text("there")))),
    UserSpoke(SETTINGS, (message(1, "approval", Decision("a", approve=True), Return("b", "", "4")),)),
    UserSpoke(replace(SETTINGS, options=replace(OPTIONS, compact={})), ()),
    ModelReplied(1, 2, message(3, "assistant", Text("so"), call("a")), USAGE, "tool_calls", ("a", "b")),
    ModelReplied(1, 1, message(3, "assistant", Text("so")), Usage(1, 2), "stop", (), {"logprobs": {"content": []}}),
    ModelReplied(1, 1, message(3, "assistant", Text("so")), USAGE, "stop", handle="anthropic/claude-haiku-4-5"),
    ModelFailed(1, 2, FAILURE),
    ContextOverflowed(2, 3),
    ContextOverflowed(2, 3, 8_000, 9_000),
    Compacted(Trigger.POST_STEP_CONTEXT_CHECK, SUMMARY, UUID(int=9), STATS, USAGE),
    Compacted(Trigger.MANUAL, None, None, replace(STATS, trigger=Trigger.MANUAL)),
    ToolsReturned(2, message(5, "tool", Return("a", "a", "4", stdout=("out",)))),
    ToolsReturned(0, message(5, "tool", Return("a", "a", "4", is_error=True, refused=True)), invalid=True),
    Reminded(message(6, "user", Text("go on"))),
    MemberSpoke(1, UUID(int=4), message(7, "assistant", Text("I say.")), USAGE, "Bob"),
    MemberSpoke(2, UUID(int=4), replace(message(8, "assistant"), run_id=None), USAGE, problem="Ada is gone."),
    RunEnded(StopReason.END_TURN),
    RunEnded(StopReason.LLM_API_ERROR, FAILURE),
]


def messages_of(fact: Fact) -> tuple[Message, ...]:
    if isinstance(fact, UserSpoke):
        return fact.messages
    found = (getattr(fact, "message", None), getattr(fact, "summary", None))
    return tuple(each for each in found if isinstance(each, Message) and each.parts)


def stored(fact: Fact) -> list[Message]:
    """Its messages as their rows give them back."""
    rows = input_rows(fact.messages) if isinstance(fact, UserSpoke) else message_rows([fact])
    messages = messages_of(fact)
    assert [row["id"] for row in rows] == [one.id for one in messages]
    return [
        message_from_row({**row, "content": _json(row["content"]), "run_id": one.run_id, "seq": 1})
        for row, one in zip(rows, messages, strict=True)
    ]


def _json(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


@pytest.mark.parametrize("fact", FACTS, ids=[type(fact).__name__ for fact in FACTS])
def test_every_fact_comes_back(fact: Fact) -> None:
    kind, version, body = to_row(fact)
    assert version <= SCHEMA_VERSION
    assert from_row(kind, version, _json(body), stored(fact)) == fact


def test_every_kind_of_fact_was_tried() -> None:
    assert {type(fact) for fact in FACTS} == set(Fact.__args__)


def test_a_reply_without_a_message() -> None:
    fact = ModelReplied(1, 1, message(3, "assistant"), USAGE, "empty", ("a",))
    read = from_row(*to_row(fact), ())
    assert isinstance(read, ModelReplied)
    # Which run it is of is not asked any more.
    assert replace(read, message=replace(read.message, run_id=fact.message.run_id)) == fact
    assert read.message.created_at == NOW


# The release before -----------------------------------------------------------------------------------------

FIRST_SETTINGS: dict[str, Any] = {
    "agent_version": 1,
    "model": "loci/demo",
    "embedding": "loci/hash",
    "system": "Be kind.",
    "context_window_limit": 32_000,
    "max_steps": 5,
    "tool_ids": [str(UUID(int=1))],
    "timezone": "UTC",
    "model_settings": {"temperature": 0},
    "response_format": None,
}
READ = Settings(
    1,
    "loci/demo",
    "loci/hash",
    "Be kind.",
    32_000,
    tool_ids=(UUID(int=1),),
    model_settings={"temperature": 0},
    options=Options(max_steps=5),
)
SAID, REPLIED, RETURNED = message(1, "user", Text("hi")), message(2, "assistant", call("a")), message(3, "tool")
FIRST: list[tuple[str, dict[str, Any], tuple[Message, ...], Fact]] = [
    ("user_spoke", {"settings": FIRST_SETTINGS}, (SAID,), UserSpoke(READ, (SAID,))),
    (
        "model_replied",
        {
            "step": 1,
            "attempt": 2,
            "finish": "stop",
            "usage": {"prompt_tokens": 3, "completion_tokens": 4},
            "message_id": str(REPLIED.id),
            "at": NOW.isoformat(),
        },
        (REPLIED,),
        ModelReplied(1, 2, REPLIED, Usage(3, 4), "stop"),
    ),
    (
        "model_failed",
        {
            "step": 1,
            "attempt": 1,
            "failure": {
                "stop_reason": "llm_api_error",
                "error_type": "llm_timeout",
                "message": "It took too long.",
                "detail": "after=60",
                "reason": "LLM_TIMEOUT",
            },
        },
        (),
        ModelFailed(1, 1, FAILURE),
    ),
    ("tools_returned", {"step": 1}, (RETURNED,), ToolsReturned(1, RETURNED)),
    ("run_ended", {"stop_reason": "max_steps", "failure": None}, (), RunEnded(StopReason.MAX_STEPS)),
]


@pytest.mark.parametrize(("kind", "body", "messages", "fact"), FIRST, ids=[row[0] for row in FIRST])
def test_facts_of_the_first_release(kind: str, body: dict[str, Any], messages: tuple[Message, ...], fact: Fact) -> None:
    before = orjson.dumps(body)
    assert from_row(kind, 1, body, messages) == fact
    assert orjson.dumps(body) == before


@pytest.mark.parametrize("kind", ["user_spoke", "run_ended", "something_new"])
def test_a_fact_of_a_newer_release_is_refused(kind: str) -> None:
    with pytest.raises(ValueError, match=rf"fact {kind} has schema version {SCHEMA_VERSION + 1}"):
        from_row(kind, SCHEMA_VERSION + 1, {}, ())


def test_a_fact_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="no fact is called 'something_new'"):
        from_row("something_new", SCHEMA_VERSION, {}, ())


# Options ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        Options(),
        OPTIONS,
        Options(max_steps=1),
        Options(client_tools=(ClientTool("mine", parameters={"a": {"b": [1]}}),)),
        Options(client_skills=(ClientSkill("sail"),)),
        Options(compact={}),
        Options(top_logprobs=0),
        Options(system=""),
    ],
)
def test_options_come_back(options: Options) -> None:
    assert options_from_json(_json(options_to_json(options))) == options


def test_usual_options_say_how_many_steps_and_nothing_else() -> None:
    assert options_to_json(Options()) == {"max_steps": 50}


def test_a_request_wins_over_its_agent() -> None:
    body = settings_to_json(replace(SETTINGS, model="openai/gpt-5", system="Be kind.", context_window_limit=99_000))
    assert settings_from_body(body) == SETTINGS
    body["options"] = {}
    assert settings_from_body(body).model == "openai/gpt-5"
    assert settings_from_body(body).options == Options()


def test_a_request_uses_no_more_of_a_window_than_the_agent_does() -> None:
    body = settings_to_json(replace(SETTINGS, context_window_limit=5_000))
    assert settings_from_body(body).context_window_limit == 5_000


def test_an_empty_prompt_is_one() -> None:
    body = settings_to_json(replace(SETTINGS, options=Options(system="")))
    assert settings_from_body(body).system == ""
