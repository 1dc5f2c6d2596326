"""The reference's Job, made of a run or of a file. Pure."""

from gateway.resources.runs.responses import run_to_rest
from gateway.rest.convert import Rest, moment
from loci.agent.v1 import run_pb2
from loci.memory.v1 import folder_pb2
from services.common.fields import enum_names

JOB, RUN = "job", "run"
_STATUSES = {"pending": "pending", "parsing": "running", "embedding": "running", "error": "failed"}
_OF_RUNS = (
    "agent_id",
    "background",
    "callback_error",
    "callback_sent_at",
    "callback_status_code",
    "callback_url",
    "completed_at",
    "created_at",
    "status",
    "stop_reason",
    "total_duration_ns",
    "ttft_ns",
)


def of_run(source: run_pb2.Run) -> Rest:
    """Returns a run as a job."""
    rest = run_to_rest(source)
    return _job(source.id, RUN) | {name: rest[name] for name in _OF_RUNS} | {"metadata": rest["metadata"] or {}}


def of_file(source: folder_pb2.File) -> Rest:
    """Returns the work on a file as a job."""
    state = enum_names(folder_pb2.FileStatus.DESCRIPTOR).get(source.status) or ""
    over = state in ("completed", "error")
    metadata = {
        "type": "embedding",
        "source_id": source.folder_id,
        "file_id": source.id,
        "filename": source.name,
        "num_passages": source.chunks_embedded,
        "num_document": 1,
    }
    return _job(source.id, JOB) | {
        "created_by_id": source.created_by_id or None,
        "created_at": moment(source.created_at),
        "updated_at": moment(source.updated_at),
        "status": _STATUSES.get(state, "completed"),
        "completed_at": moment(source.updated_at) if over else None,
        "metadata": metadata | ({"error": source.error} if source.error else {}),
    }


def _job(object_id: str, job_type: str) -> Rest:
    nulls = dict.fromkeys(("created_by_id", "last_updated_by_id", "updated_at", *_OF_RUNS))
    return nulls | {
        "id": f"job-{object_id.partition('-')[2]}",
        "job_type": job_type,
        "background": True,
        "metadata": {},
    }
