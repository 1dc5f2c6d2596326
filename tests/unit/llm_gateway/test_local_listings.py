"""Lists of models of local servers, new versions and old."""

from typing import Any

import pytest

from services.llm_gateway.core.models import ListedModel, ModelKind
from services.llm_gateway.vendors.lmstudio.listing import of_v0, of_v1
from services.llm_gateway.vendors.ollama.listing import listed_model
from services.llm_gateway.vendors.vllm.replies import models_in as vllm_listed
from tests.fakes.lmstudio_server import V0, V1

CHAT, EMBEDDING, OTHER, UNKNOWN = ModelKind.CHAT, ModelKind.EMBEDDING, ModelKind.OTHER, ModelKind.UNKNOWN
CAN = {"tools": True, "vision": False, "reasoning": False, "structured_output": True}


@pytest.mark.parametrize(
    ("shown", "kind", "capabilities"),
    [
        ({"capabilities": ["completion", "tools"]}, CHAT, CAN),
        (
            {"capabilities": ["completion", "vision", "thinking"]},
            CHAT,
            {"tools": False, "vision": True, "reasoning": True, "structured_output": True},
        ),
        ({"capabilities": ["completion", "tools", "thinking"], "thinking": {"values": [False]}}, CHAT, CAN),
        ({"capabilities": ["embedding"]}, EMBEDDING, {}),
        ({"capabilities": ["image"]}, OTHER, {}),
        # Before 0.6.4: what the template and the weights say, and no more.
        ({"template": "{{ if .Tools }}{{ end }}"}, CHAT, {"tools": True}),
        ({"template": "{{ .Prompt }}"}, CHAT, {"tools": False}),
        (
            {"template": "{{ .Prompt }}", "projector_info": {"clip.has_vision_encoder": True}},
            CHAT,
            {"tools": False, "vision": True},
        ),
        (
            {"template": "{{ .Prompt }}", "details": {"families": ["llama", "clip"]}},
            CHAT,
            {"tools": False, "vision": True},
        ),
        ({"model_info": {"gemma3.vision.block_count": 27}}, UNKNOWN, {"vision": True}),
        ({"template": "{{ .Prompt }}", "details": {"family": "nomic-bert"}}, EMBEDDING, {}),
        ({"template": "{{ .Prompt }}", "model_info": {"qwen3.pooling_type": 3}}, EMBEDDING, {}),
        ({}, UNKNOWN, {}),
    ],
)
def test_what_an_ollama_model_can(shown: dict[str, Any], kind: ModelKind, capabilities: dict[str, bool]) -> None:
    listed = listed_model("m", {}, shown)
    assert (listed.kind, dict(listed.capabilities), listed.context_window) == (kind, capabilities, None)


@pytest.mark.parametrize(
    ("info", "parameters", "window"),
    [
        ({"llama.context_length": 131_072}, "", 131_072),
        ({"llama.context_length": 131_072}, 'stop    "<|eot|>"\nnum_ctx                        8192', 8_192),
        ({"llama.context_length": 2_048}, "num_ctx 8192", 2_048),
        ({}, "num_ctx 8192", 8_192),
        ({"llama.vision.context_length": 77, "llama.context_length": 0}, "", None),
        ({}, "", None),
    ],
)
def test_the_window_of_an_ollama_model(info: dict[str, Any], parameters: str, window: int | None) -> None:
    assert listed_model("m", {}, {"model_info": info, "parameters": parameters}).context_window == window


def test_the_length_of_an_ollama_models_vectors() -> None:
    info = {"nomic-bert.embedding_length": 768, "nomic-bert.context_length": 2_048}
    assert listed_model("m", {}, {"capabilities": ["embedding"], "model_info": info}).dimensions == 768
    assert listed_model("m", {}, {"capabilities": ["completion"], "model_info": info}).dimensions is None


def test_lm_studio() -> None:
    vision, loaded, embedding = of_v0({"data": V0}) or ()
    assert vision == ListedModel(V0[0]["id"], 32_768, kind=CHAT, capabilities={"vision": True, "tools": True})
    # What it is loaded with, not what it could take; that it was not trained for tools is not that it takes none.
    assert loaded == ListedModel(V0[1]["id"], 8_192, kind=CHAT, capabilities={"vision": False})
    assert (embedding.kind, embedding.context_window, embedding.capabilities) == (EMBEDDING, 2_048, {})
    vision, loaded, embedding = of_v1({"models": V1}) or ()
    assert (vision.context_window, dict(vision.capabilities)) == (32_768, {"vision": True, "tools": True})
    assert (loaded.context_window, dict(loaded.capabilities)) == (8_192, {"vision": False})
    assert (loaded.display_name, embedding.kind) == ("Llama 3.1 8B", EMBEDDING)
    thinking = {"key": "m", "type": "llm", "capabilities": {"vision": False, "reasoning": {"default": "on"}}}
    assert (of_v1({"models": [thinking]}) or ())[0].capabilities == {"vision": False, "reasoning": True}
    unknown = {"error": "Unexpected endpoint or method. (GET /api/v1/models)"}
    assert of_v1(unknown) is of_v0(unknown) is None


def test_vllm_with_and_without_max_model_len() -> None:
    base, adapter = {"id": "base", "max_model_len": 4_096}, {"id": "lora", "parent": "base", "max_model_len": None}
    assert vllm_listed({"data": [base, adapter]}) == [
        ListedModel("base", 4_096),
        ListedModel("lora", 4_096, base_model="base"),
    ]
    assert [one.context_window for one in vllm_listed({"data": [{"id": "base"}, adapter]})] == [None, None]
    assert vllm_listed(["nothing"]) == []
