"""Models of a few words in folders as hubs have them: real ONNX graphs and tokenizers, made in a moment.

The embedding knows that some words mean the same; the reranker counts words of the text that are in its list.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace

# Words of one line mean the same.
MEANINGS = (("boat", "ship", "vessel"), ("doctor", "physician"), ("bread", "loaf"), ("harbour", "port"))
_UNKNOWN = "[UNK]"
_OPSET, _IR = 17, 8
_NAMES = ("input_ids", "attention_mask", "token_type_ids")


def make_embedding(folder: Path, *, first_token: bool = False, longest: int = 64) -> Path:
    """Writes a model of vectors with a number for each meaning, and one for all else; returns its folder."""
    words = [word for meaning in MEANINGS for word in meaning]
    table = np.zeros((len(words) + 1, len(MEANINGS) + 1), dtype=np.float32)
    table[0, -1] = 0.1
    for number, meaning in enumerate(MEANINGS):
        for word in meaning:
            table[1 + words.index(word), number] = 1.0
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])]
    shape: list[str | int] = ["batch", "tokens", table.shape[1]]
    _write(folder, words, {"table": table}, nodes, "last_hidden_state", shape)
    (folder / "config.json").write_text(json.dumps({"hidden_size": table.shape[1]}))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": longest}))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": first_token}))
    return folder


def make_reranker(folder: Path, good: Sequence[str]) -> Path:
    """Writes a model that finds a text better the more good words it has; returns its folder."""
    scores = np.array([-1.0, *[2.0] * len(good)], dtype=np.float32)
    nodes = [
        helper.make_node("Gather", ["scores", "input_ids"], ["each"]),
        helper.make_node("Cast", ["token_type_ids"], ["of_text"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["each", "of_text"], ["counted"]),
        helper.make_node("ReduceSum", ["counted", "axes"], ["logits"], keepdims=1),
    ]
    _write(folder, good, {"scores": scores, "axes": np.array([1])}, nodes, "logits", ["batch", 1])
    (folder / "config.json").write_text(json.dumps({"hidden_size": 1}))
    return folder


def _write(
    folder: Path,
    words: Sequence[str],
    values: Mapping[str, np.ndarray],
    nodes: Sequence[onnx.NodeProto],
    output: str,
    shape: Sequence[str | int],
) -> None:
    folder.mkdir(parents=True)
    tokenizer = Tokenizer(WordLevel({_UNKNOWN: 0, **{word: 1 + place for place, word in enumerate(words)}}, _UNKNOWN))
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    used = [name for name in _NAMES if any(name in node.input for node in nodes)]
    graph = helper.make_graph(
        nodes,
        folder.name,
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in used],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(value, name) for name, value in values.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR)
    onnx.checker.check_model(model)
    onnx.save(model, str(folder / "model.onnx"))
