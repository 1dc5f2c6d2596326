"""Routes of the reference that wait for a later capability."""

from fastapi import APIRouter

from gateway.openapi.answers import returns
from gateway.openapi.schemas import NULL
from gateway.rest.not_yet import NotYet, not_yet
from gateway.rest.params import AgentId

router = APIRouter()

_BATCHES = (
    "batches of messages are not handed to providers yet; send each message with "
    "POST /v1/agents/{agent_id}/messages/async, which answers at once and tells its callback_url of the end"
)
_VOICE = (
    "agents do not speak over this route yet; POST /v1/chat/completions takes an agent as the model, and streams what "
    "it says"
)


@router.post("/messages/batches", tags=["messages"])
@not_yet(_BATCHES)
@returns(NULL)
async def create_batch() -> None:
    """Answers 501: batches are not handed to providers yet."""
    raise NotYet(_BATCHES)


@router.get("/messages/batches", tags=["messages"])
@not_yet(_BATCHES)
@returns(NULL)
async def list_batches() -> None:
    """Answers 501: batches are not handed to providers yet."""
    raise NotYet(_BATCHES)


@router.get("/messages/batches/{batch_id}", tags=["messages"])
@not_yet(_BATCHES)
@returns(NULL)
async def retrieve_batch(batch_id: str) -> None:
    """Answers 501: batches are not handed to providers yet."""
    raise NotYet(_BATCHES)


@router.get("/messages/batches/{batch_id}/messages", tags=["messages"])
@not_yet(_BATCHES)
@returns(NULL)
async def list_batch_messages(batch_id: str) -> None:
    """Answers 501: batches are not handed to providers yet."""
    raise NotYet(_BATCHES)


@router.patch("/messages/batches/{batch_id}/cancel", tags=["messages"])
@not_yet(_BATCHES)
@returns(NULL)
async def cancel_batch(batch_id: str) -> None:
    """Answers 501: batches are not handed to providers yet."""
    raise NotYet(_BATCHES)


@router.post("/voice-beta/{agent_id}/chat/completions", tags=["voice"], deprecated=True)
@not_yet(_VOICE)
@returns(NULL)
async def speak(agent_id: AgentId) -> None:
    """Answers 501: agents do not speak over this route yet."""
    raise NotYet(_VOICE)
