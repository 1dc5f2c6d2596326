"""The folder of a model, with files as hubs have them: the ONNX graph, its tokenizer, and how to use both."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The graph is where exporters put it. Of a hub's repository, these files are all that is fetched.
GRAPHS = ("model.onnx", "onnx/model.onnx")
TOKENIZER, CONFIG = "tokenizer.json", "config.json"
_POOLING, _SENTENCES, _TOKENIZER_CONFIG = "1_Pooling/config.json", "sentence_bert_config.json", "tokenizer_config.json"
FILES = (*GRAPHS, TOKENIZER, CONFIG, _POOLING, _SENTENCES, _TOKENIZER_CONFIG)
# Of more tokens a text is cut; attention takes the square of that.
_MOST_TOKENS = 512


class ModelFolderWrong(Exception):
    """The folder holds no model that can be used; the text says why, without a full stop."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model's files. longest: tokens of a text that count; first_token: whose vector stands for the text, else the
    mean of all.
    """

    graph: Path
    tokenizer: Path
    dimensions: int
    longest: int
    first_token: bool


def read_folder(folder: Path) -> ModelFolder:
    """Returns what a folder holds. Raises ModelFolderWrong."""
    graph = next((folder / name for name in GRAPHS if (folder / name).is_file()), None)
    if graph is None:
        raise ModelFolderWrong(f"{folder} has no {' or '.join(GRAPHS)}; export the model to ONNX")
    if not (folder / TOKENIZER).is_file():
        raise ModelFolderWrong(f"{folder} has no {TOKENIZER}, a fast tokenizer of the model")
    config = _object(folder / CONFIG)
    dimensions = config.get("hidden_size") or config.get("dim")
    if type(dimensions) is not int:
        raise ModelFolderWrong(f"{folder / CONFIG} does not say hidden_size")
    limits = (
        _object(folder / _SENTENCES).get("max_seq_length"),
        _object(folder / _TOKENIZER_CONFIG).get("model_max_length"),
        config.get("max_position_embeddings"),
        _MOST_TOKENS,
    )
    longest = next(limit for limit in limits if type(limit) is int)
    return ModelFolder(
        graph,
        folder / TOKENIZER,
        dimensions,
        max(2, min(longest, _MOST_TOKENS)),
        bool(_object(folder / _POOLING).get("pooling_mode_cls_token")),
    )


def _object(path: Path) -> Mapping[str, Any]:
    try:
        value = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ModelFolderWrong(f"{path} cannot be read ({error})") from None
    return value if isinstance(value, Mapping) else {}
