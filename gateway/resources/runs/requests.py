"""Feedback on steps."""

from typing import Literal

from gateway.rest.body import Body
from loci.agent.v1 import run_pb2, step_service_pb2

_NUMBERS = {
    "positive": run_pb2.STEP_FEEDBACK_POSITIVE,
    "negative": run_pb2.STEP_FEEDBACK_NEGATIVE,
    None: run_pb2.STEP_FEEDBACK_UNSPECIFIED,
}


class StepFeedback(Body):
    """Body of steps.feedback.create. A null `feedback` takes back what was said; without it, tags alone are added."""

    feedback: Literal["positive", "negative"] | None = None
    tags: list[str] | None = None

    def request(self, step_id: str) -> step_service_pb2.SetStepFeedbackRequest:
        """Returns the request."""
        request = step_service_pb2.SetStepFeedbackRequest(step_id=step_id, add_tags=self.tags)
        if "feedback" in self.model_fields_set:
            request.feedback = _NUMBERS[self.feedback]
        return request
