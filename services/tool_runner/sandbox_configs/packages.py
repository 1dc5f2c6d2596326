"""Packages that sandbox settings require, installed before a call needs them."""

from uuid import UUID

from services.tool_runner.core.model import Tool, ToolType
from services.tool_runner.core.ports import Layers
from services.tool_runner.sandbox_configs.rules.configs import EffectiveConfig


class Packages:
    """Has layers made as a tool has that requires the same and nothing else."""

    def __init__(self, layers: Layers) -> None:
        self._layers = layers

    async def install(self, config: EffectiveConfig) -> None:
        """Raises FailedPrecondition (REQUIREMENTS_FAILED) and SandboxUnavailable."""
        for source_type in ("python", "javascript"):
            await self._layers.of_tool(
                Tool(
                    id=UUID(int=0),
                    name="packages",
                    description="",
                    tool_type=ToolType.CUSTOM,
                    source_type=source_type,
                    source_code="",
                    json_schema="",
                    pip_requirements=config.pip_requirements if source_type == "python" else "",
                    npm_requirements=config.npm_requirements if source_type == "javascript" else "",
                )
            )
