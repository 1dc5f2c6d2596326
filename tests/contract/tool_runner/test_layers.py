"""Packages of tools, installed for real from an index on loopback, in every sandbox that is here."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio

from services.common.errors import FailedPrecondition
from services.tool_runner.core.job import ExitReason, Job, Language, Layer, Result
from services.tool_runner.core.model import Tool, ToolType
from services.tool_runner.core.ports import Sandbox
from services.tool_runner.egress.egress import Egress, EgressSettings
from services.tool_runner.layers.install_job import LayerSettings
from services.tool_runner.layers.layers import Layers
from tests.contract.tool_runner.folders import open_folder
from tests.fakes.package_index import PackageIndex, package_index, wheel
from tests.integration.tool_runner.harness import OneSandbox

PYTHON = "import greeter\ndef tool(name):\n    return greeter.greet(name)"
NODE = "import { greet } from 'greeter';\nexport function tool(name: string): string { return greet(name); }"


@pytest.fixture
def index() -> Iterator[PackageIndex]:
    with package_index() as serving:
        serving.add_wheel("helper", "2.0", {"helper/__init__.py": "WORD = 'Hello'\n"})
        code = "import helper\ndef greet(name):\n    return f'{helper.WORD}, {name}'\n"
        serving.add_wheel("greeter", "1.0", {"greeter.py": "def greet(name):\n    return 'old'\n"})
        serving.add_wheel("greeter", "1.1", {"greeter.py": code}, requires=("helper>=2",))
        serving.add_npm("greeter", "1.1.0", {"index.js": "exports.greet = (name) => `Hello, ${name}`;\n"})
        yield serving


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where layers are kept."""
    with open_folder() as opened:
        yield opened / "layers"


@pytest_asyncio.fixture(loop_scope="module")
async def layers(sandbox: Sandbox, index: PackageIndex, folder: Path) -> AsyncIterator[Layers]:
    settings = LayerSettings(folder, pip_index_url=f"{index.url}/simple", npm_registry=index.url, most_bytes=64 * 2**20)
    made = Layers(settings, OneSandbox(sandbox), Egress(EgressSettings()))
    yield made
    await made.close()


def tool(source_type: str = "python", **requirements: object) -> Tool:
    texts = {name: json.dumps(value) for name, value in requirements.items()}
    bare = Tool(
        id=uuid4(),
        name="tool",
        description="",
        tool_type=ToolType.CUSTOM,
        source_type=source_type,
        source_code="",
        json_schema="{}",
    )
    return replace(bare, **texts)  # type: ignore[arg-type]


async def greeted(sandbox: Sandbox, layer: Layer | None, source: str, language: Language) -> Result:
    return await sandbox.run(Job(source, "tool", {"name": "Ada"}, layer=layer, language=language))


async def test_packages_of_python_with_what_they_need(sandbox: Sandbox, layers: Layers, index: PackageIndex) -> None:
    wanted = tool(pip_requirements=[{"name": "greeter", "version": "1.1"}])
    both = await asyncio.gather(layers.of_tool(wanted), layers.of_tool(wanted))
    assert both[0] == both[1]
    assert sum(path.endswith("greeter-1.1-py3-none-any.whl") for path in index.asked) == 1
    result = await greeted(sandbox, both[0], PYTHON, Language.PYTHON)
    assert (result.reason, result.result) == (ExitReason.OK, '"Hello, Ada"'), result
    asked = len(index.asked)
    assert await layers.of_tool(wanted) == both[0]
    assert len(index.asked) == asked
    without = await greeted(sandbox, None, PYTHON, Language.PYTHON)
    assert without.error is not None
    assert without.error.type == "ModuleNotFoundError"


async def test_packages_of_npm_and_none_of_their_scripts(sandbox: Sandbox, layers: Layers) -> None:
    layer = await layers.of_tool(tool("typescript", npm_requirements=[{"name": "greeter", "version": "^1.1"}]))
    result = await greeted(sandbox, layer, NODE, Language.NODE)
    assert (result.reason, result.result) == (ExitReason.OK, '"Hello, Ada"'), result
    listing = "export const tool = () => require('fs').readdirSync('/opt/loci/layer/node_modules/greeter')"
    result = await greeted(sandbox, layer, listing, Language.NODE)
    assert json.loads(result.result or "") == ["index.js", "package.json"]


async def test_a_layer_can_be_changed_by_no_tool(sandbox: Sandbox, layers: Layers) -> None:
    layer = await layers.of_tool(tool(pip_requirements=[{"name": "greeter"}]))
    source = "def tool(name):\n    open('/opt/loci/layer/python/greeter.py', 'a').write('x')"
    result = await greeted(sandbox, layer, source, Language.PYTHON)
    assert result.error is not None
    assert result.error.type in ("OSError", "PermissionError")


async def test_a_failure_is_told_in_the_installers_words_and_remembered(layers: Layers, index: PackageIndex) -> None:
    wanted = tool(pip_requirements=[{"name": "no-such-package-here"}])
    with pytest.raises(FailedPrecondition) as caught:
        await layers.of_tool(wanted)
    assert caught.value.reason == "REQUIREMENTS_FAILED"
    assert "No matching distribution found for no-such-package-here" in str(caught.value)
    asked = len(index.asked)
    with pytest.raises(FailedPrecondition, match="No matching distribution"):
        await layers.of_tool(wanted)
    assert len(index.asked) == asked


async def test_a_tool_without_requirements_has_no_layer(layers: Layers) -> None:
    assert await layers.of_tool(tool(pip_requirements=[])) is None
    assert await layers.of_tool(tool("typescript", pip_requirements=[{"name": "greeter"}])) is None


async def test_the_installer_reaches_the_index_alone(sandbox: Sandbox, index: PackageIndex, folder: Path) -> None:
    """The file of a package that lies at another host is not fetched, although this machine reaches it."""
    with package_index() as elsewhere:
        elsewhere.add_wheel("stray", "1.0", {"stray.py": ""})
        link = f'<a href="{elsewhere.url}/files/stray-1.0-py3-none-any.whl">stray-1.0-py3-none-any.whl</a>'
        index._files["/simple/stray/"] = ("text/html", f"<!DOCTYPE html><html><body>{link}</body></html>".encode())
        settings = LayerSettings(folder, pip_index_url=f"{index.url}/simple", most_bytes=64 * 2**20)
        layers = Layers(settings, OneSandbox(sandbox), Egress(EgressSettings()))
        with pytest.raises(FailedPrecondition):
            await layers.of_tool(tool(pip_requirements=[{"name": "stray"}]))
        assert elsewhere.asked == []


async def test_a_folder_of_wheels_needs_no_index(sandbox: Sandbox, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels/folded-3.0-py3-none-any.whl").write_bytes(wheel("folded", "3.0", {"folded.py": "X = 3\n"}))
    settings = LayerSettings(
        folder, pip_index_url="none", pip_find_links=(str(tmp_path / "wheels"),), most_bytes=64 * 2**20
    )
    layer = await Layers(settings, OneSandbox(sandbox), Egress(EgressSettings())).of_tool(
        tool(pip_requirements=[{"name": "folded", "version": ">=2"}])
    )
    result = await greeted(sandbox, layer, "import folded\ndef tool(name):\n    return folded.X", Language.PYTHON)
    assert result.result == "3", result
