"""The differences between the loops of the agent types: values, not code. Pure. Source: LETTA V1 API, agent loop."""

from dataclasses import dataclass

from services.agent.core.window.compaction import Mode


@dataclass(frozen=True, slots=True)
class Policy:
    """The choices of an agent type in the loop.

    must_call: every reply must call a tool; one that does not ends the run.
    heartbeats: a call goes on only if the model asks for it, by `request_heartbeat`; else any call does.
    inner_thoughts: tools have an argument `thinking` for the model's reasoning.
    shows_memory: the prompt shows the memory blocks.
    autoclear: each run begins with an empty window.
    compaction: the summariser of the type; None: as the agent's settings say.
    summary_block: label of the block that collects summaries beside the window; None: none does.
    """

    must_call: bool = False
    heartbeats: bool = False
    inner_thoughts: bool = False
    shows_memory: bool = True
    autoclear: bool = False
    compaction: Mode | None = None
    summary_block: str | None = None


_MODERN = Policy()
_OLDER = Policy(must_call=True, heartbeats=True, inner_thoughts=True, compaction=Mode.PARTIAL_EVICT)
_PLAIN = Policy(must_call=True, heartbeats=True, inner_thoughts=True, shows_memory=False, compaction=Mode.PARTIAL_EVICT)
_VOICE = Policy(must_call=True, heartbeats=True, compaction=Mode.STATIC_BUFFER, summary_block="conversation_summary")

POLICIES: dict[str, Policy] = {
    "letta_v1_agent": _MODERN,
    "sleeptime_agent": _MODERN,
    "memgpt_agent": _OLDER,
    "memgpt_v2_agent": _OLDER,
    "split_thread_agent": _OLDER,
    "react_agent": _PLAIN,
    "workflow_agent": Policy(
        must_call=True,
        heartbeats=True,
        inner_thoughts=True,
        shows_memory=False,
        autoclear=True,
        compaction=Mode.PARTIAL_EVICT,
    ),
    "voice_convo_agent": _VOICE,
    "voice_sleeptime_agent": _VOICE,
}
