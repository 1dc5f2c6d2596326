"""Jobs, the reference's older word for work in the background: runs, and what is done with uploaded files.

A job has the UUID of its run or its file.
"""

from contextlib import suppress
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from gateway.errors.invalid import InvalidRequest
from gateway.errors.problems import Problem
from gateway.openapi.answers import returns
from gateway.openapi.schemas import array
from gateway.resources.jobs.responses import JOB, of_file, of_run
from gateway.resources.jobs.schemas import JOB as JOB_SCHEMA
from gateway.rest.paging import FIRST_PAGE, Order, paged, set_order
from gateway.rest.params import JobId
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from loci.agent.v1 import run_pb2, run_service_pb2
from loci.common.v1.page_pb2 import PageRequest
from loci.memory.v1 import folder_service_pb2
from services.common.errors import Aborted, NotFound

router = APIRouter(prefix="/jobs", tags=["jobs"])

Source = Annotated[str | None, Query(description="Uploads to this folder, instead of runs.")]
_OF_FILE = Problem(400, {"detail": "what is done with a file is not a job apart from it: delete the file"})
_ACTIVE = (run_pb2.RUN_STATUS_CREATED, run_pb2.RUN_STATUS_RUNNING)


@router.get("")
@returns(array(JOB_SCHEMA))
@paged(50, names="before after limit")
async def list_jobs(
    loci: Loci,
    source_id: Source = None,
    page: PageRequest = FIRST_PAGE,
    order: Order | None = None,
    order_by: Literal["created_at"] = "created_at",
    active: bool = False,
    ascending: Annotated[bool, Query(deprecated=True)] = False,
) -> Response:
    """Returns a page of background runs, newest first; with `source_id`, of the files of a folder instead."""
    set_order(page, ascending=order == "asc" if order is not None else ascending)
    for name in ("after", "before"):
        if page.HasField(name):
            setattr(page, name, _cursor(getattr(page, name), source_id))
    if source_id is not None:
        files = folder_service_pb2.ListFilesRequest(folder_id=source_id, page=page, unfinished=active)
        found = await loci.peers.call(loci.peers.folders.ListFiles, files)
        return json_response([of_file(one) for one in found.files])
    runs = run_service_pb2.ListRunsRequest(page=page, background=True, statuses=_ACTIVE if active else ())
    response = await loci.peers.call(loci.peers.runs.ListRuns, runs)
    return json_response([of_run(one) for one in response.runs])


@router.get("/active", deprecated=True)
@returns(array(JOB_SCHEMA))
@paged(50, names="before after limit")
async def list_active_jobs(
    loci: Loci,
    source_id: Source = None,
    page: PageRequest = FIRST_PAGE,
    ascending: bool = True,
) -> Response:
    """Returns the jobs that are not done."""
    return await list_jobs(loci, source_id, page=page, active=True, ascending=ascending)


@router.get("/{job_id}")
@returns(JOB_SCHEMA)
async def retrieve_job(job_id: JobId, loci: Loci) -> Response:
    """Returns a run, or the processing of a file."""
    return json_response(await _job(loci, job_id))


@router.patch("/{job_id}/cancel")
@returns(JOB_SCHEMA)
async def cancel_job(job_id: JobId, loci: Loci) -> Response:
    """Asks a run to stop."""
    job = await _job(loci, job_id)
    if job["job_type"] == JOB:
        return _OF_FILE.response()
    if job["status"] not in ("created", "running"):
        raise Aborted(f"{job_id} has ended already", reason="NOTHING_TO_CANCEL")
    request = run_service_pb2.CancelRunsRequest(agent_id=job["agent_id"], run_ids=[_other("run", job_id)])
    await loci.peers.call(loci.peers.runs.CancelRuns, request)
    return json_response(await _job(loci, job_id))


@router.delete("/{job_id}")
@returns(JOB_SCHEMA)
async def delete_job(job_id: JobId, loci: Loci) -> Response:
    """Erases a run that has ended, and answers with what it was; what was said stays in its conversation."""
    job = await _job(loci, job_id)
    if job["job_type"] == JOB:
        return _OF_FILE.response()
    request = run_service_pb2.DeleteRunRequest(run_id=_other("run", job_id))
    await loci.peers.call(loci.peers.runs.DeleteRun, request)
    return json_response(job)


async def _job(loci: Services, job_id: str) -> dict[str, Any]:
    """Raises NotFound."""
    peers = loci.peers
    with suppress(NotFound):
        run = run_service_pb2.GetRunRequest(run_id=_other("run", job_id))
        return of_run((await peers.call(peers.runs.GetRun, run)).run)
    with suppress(NotFound):
        file = folder_service_pb2.GetFileRequest(file_id=_other("file", job_id))
        return of_file((await peers.call(peers.folders.GetFile, file)).file)
    raise NotFound(f"Job {job_id} not found", reason="RUN_NOT_FOUND")


def _cursor(job_id: str, source_id: str | None) -> str:
    """Returns the id of the run or the file that a job is. Raises InvalidRequest."""
    if not job_id.startswith("job-"):
        raise InvalidRequest("a cursor of this list is the id of a job, such as job-...", "query", "after")
    return _other("run" if source_id is None else "file", job_id)


def _other(prefix: str, job_id: str) -> str:
    return f"{prefix}-{job_id.removeprefix('job-')}"
