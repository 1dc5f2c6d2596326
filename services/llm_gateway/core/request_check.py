"""The check of a request against its model, as far as is known before it is sent. Pure."""

from services.llm_gateway.core.chat import ChatRequest, Image, ToolResult
from services.llm_gateway.core.errors import LlmBadRequest, LlmError, LlmImagesUnsupported, LlmToolsUnsupported
from services.llm_gateway.core.models import ChatModel


def check(request: ChatRequest, model: ChatModel) -> None:
    """Raises LlmBadRequest for a choice that is none, LlmToolsUnsupported and LlmImagesUnsupported for what the model
    is known not to take.
    """
    can, problem = model.capabilities, ""
    kind: type[LlmError] = LlmBadRequest
    choice = request.tool_choice
    if isinstance(choice, str) and all(tool.name != choice for tool in request.tools):
        problem = f"cannot be made to call {choice}, which is not among the tools offered"
    elif request.tools and not can.tools:
        kind, problem = LlmToolsUnsupported, "takes no tools; detach the agent's tools or choose another model"
    elif not can.vision and any(_has_image(part) for message in request.messages for part in message.parts):
        kind, problem = LlmImagesUnsupported, "takes no images; leave them out or choose another model"
    if problem:
        raise kind(f"{model.handle} {problem}.", provider=model.provider_name, handle=model.handle)


def _has_image(part: object) -> bool:
    return isinstance(part, Image) or (isinstance(part, ToolResult) and any(map(_has_image, part.content)))
