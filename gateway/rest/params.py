"""Parameters that many routes share: ids in paths, filters."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from fastapi import Path, Query
from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from gateway.errors.invalid import EXAMPLE_UUID, InvalidRequest
from services.common.errors import InvalidArgument, NotFound
from services.common.ids import from_public

T = TypeVar("T")


def checked_id(prefix: str) -> AfterValidator:
    """Answers 422 for a value that is no id with `prefix`."""

    def check(value: str) -> str:
        try:
            from_public(prefix, value)
        except InvalidArgument as error:
            # The handler of validation errors finds the prefix in the context.
            context = {"sentence": error.message, "prefix": prefix}
            raise PydanticCustomError("string_pattern_mismatch", "{sentence}", context) from None
        return value

    return AfterValidator(check)


def _if_given(prefix: str) -> AfterValidator:
    check: Any = checked_id(prefix).func
    return AfterValidator(lambda value: None if value is None else check(value))


def conversation_ref(value: str) -> str:
    """Answers 422 for a value that names no conversation: its id, `default`, or the id of its agent."""
    if value == "default":
        return value
    check: Any = checked_id("agent" if value.startswith("agent-") else "conv").func
    checked: str = check(value)
    return checked


def checkpoint_id(value: str) -> str:
    """Answers 422 for a value that is no id of a checkpoint: of a run, of a step or of a message."""
    prefix = value.partition("-")[0]
    check: Any = checked_id(prefix if prefix in ("message", "step") else "run").func
    checked: str = check(value)
    return checked


def _in_utc(value: datetime) -> datetime:
    """Without an offset it is UTC. Answers 422 where that is no time from the year 1 to 9999, as near either end."""
    try:
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    except OverflowError:
        sentence = "Input should be a time between the years 1 and 9999 in UTC"
        raise PydanticCustomError("datetime_out_of_range", "{sentence}", {"sentence": sentence}) from None


Moment = Annotated[datetime, AfterValidator(_in_utc)]


def _an_agent(value: str) -> str:
    """Raises NotFound for a value that is no id of an agent."""
    try:
        from_public("agent", value)
    except InvalidArgument as error:
        raise NotFound(error.message, reason="AGENT_NOT_FOUND") from None
    return value


def _run_id(value: str) -> str:
    """Raises InvalidArgument: unlike that of other ids, a wrong form of a run's is 400."""
    try:
        from_public("run", value)
    except InvalidArgument as error:
        raise InvalidArgument(f"Invalid run ID format: {error.message}", reason="RUN_ID_INVALID") from None
    return value


def _path(prefix: str) -> object:
    return Path(examples=[f"{prefix}-{EXAMPLE_UUID}"])


AgentId = Annotated[str, _path("agent"), checked_id("agent")]
BlockId = Annotated[str, _path("block"), checked_id("block")]
ToolId = Annotated[str, _path("tool"), checked_id("tool")]
ArchiveId = Annotated[str, _path("archive"), checked_id("archive")]
FolderId = Annotated[str, _path("source"), checked_id("source")]
FileId = Annotated[str, _path("file"), checked_id("file")]
PassageId = Annotated[str, _path("passage"), checked_id("passage")]
RunId = Annotated[str, _path("run"), AfterValidator(_run_id)]
JobId = Annotated[str, _path("job"), checked_id("job")]
StepId = Annotated[str, _path("step"), checked_id("step")]
IdentityId = Annotated[str, _path("identity"), checked_id("identity")]
GroupId = Annotated[str, _path("group"), checked_id("group")]
MessageId = Annotated[str, _path("message"), checked_id("message")]
ConversationId = Annotated[str, _path("conv"), checked_id("conv")]
# A conversation; or `default`, with the agent elsewhere; or (deprecated) the agent whose default conversation is meant.
ConversationRef = Annotated[str, _path("conv"), AfterValidator(conversation_ref)]
NeededAgent = Annotated[str, Query(), AfterValidator(_an_agent)]
AgentFilter = Annotated[str | None, Query(), _if_given("agent")]
IdentityFilter = Annotated[str | None, Query(), _if_given("identity")]
UserFilter = Annotated[str | None, Query(), _if_given("user")]
AgentInBody = Annotated[str | None, _if_given("agent")]
PassageInBody = Annotated[str, checked_id("passage")]
ArchiveInBody = Annotated[str | None, _if_given("archive")]
RunInBody = Annotated[str | None, _if_given("run")]
CheckpointRef = Annotated[
    str | None, Query(), AfterValidator(lambda value: None if value is None else checkpoint_id(value))
]
MessageRef = Annotated[str | None, Query(), _if_given("message")]

Names = Annotated[list[str] | None, Query()]


def unsupported(**filters: object) -> None:
    """Raises InvalidRequest for a filter that was given and cannot be applied: a wrong list would be worse."""
    for name, value in filters.items():
        if value is not None and value is not False:
            raise InvalidRequest(f"`{name}`: this filter is not available yet; leave it out", "query", name)


def split(values: Sequence[str] | None) -> list[str]:
    """Returns the values, which come as repeated parameters, separated by commas, or both."""
    return [part.strip() for value in values or () for part in value.split(",") if part.strip()]
