"""The process of one model: it holds the model and nothing else, with bounded threads and memory.

Its argument is a JSON object: {"graph", "tokenizer", "longest", "first_token", "threads", "memory_bytes"}. It first
says {"ready": true}; then, on stdin and stdout, a line of JSON for each request: {"texts"} in, {"vectors", "tokens"}
out, of which `vectors` is base64 of 32-bit numbers, one vector after the other, each of length 1; or {"query", "texts"}
in, {"scores"} out, 0 to 1, for a model that compares. {"error"}, a sentence, where the model cannot be used.
"""

import base64
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from tokenizers import Encoding, Tokenizer

from services.common.process_limits import limit_process

# Texts of about the same length are computed together, as many as have so many tokens.
_TOKENS_AT_ONCE = 1_024
# Of ONNX Runtime: errors alone go to stderr.
_ERRORS = 3
_LEAST_NORM = 1e-12


class Model:
    """A graph and its tokenizer."""

    def __init__(self, graph: bytes, tokenizer: bytes, options: Mapping[str, Any]) -> None:
        self._tokenizer = Tokenizer.from_buffer(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=options["longest"])
        self._first_token = options["first_token"]
        session = onnxruntime.SessionOptions()
        session.intra_op_num_threads, session.inter_op_num_threads = options["threads"], 1
        session.log_severity_level = _ERRORS
        # An arena keeps the most that it ever needed.
        session.enable_cpu_mem_arena = False
        # Threads that spin while they wait take the cores of others.
        session.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(graph, session, providers=["CPUExecutionProvider"])
        self._inputs = [one.name for one in self._session.get_inputs()]

    def embed(self, texts: Sequence[str]) -> dict[str, Any]:
        """Returns a unit vector for each text, and how many tokens they have."""
        encodings = self._tokenizer.encode_batch(list(texts))
        vectors: list[Any] = [None] * len(texts)
        for numbers, mask, output in self._outputs(encodings):
            pooled = output if output.ndim == 2 else self._pool(output, mask)
            pooled /= np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), _LEAST_NORM)
            for number, vector in zip(numbers, pooled, strict=True):
                vectors[number] = vector
        packed = np.stack(vectors).astype("<f4").tobytes()
        return {"vectors": base64.b64encode(packed).decode(), "tokens": _tokens(encodings)}

    def compare(self, query: str, texts: Sequence[str]) -> dict[str, Any]:
        """Returns how well each text answers the query."""
        encodings = self._tokenizer.encode_batch([(query, text) for text in texts])
        scores = [0.0] * len(texts)
        for numbers, _, output in self._outputs(encodings):
            for number, row in zip(numbers, output.reshape(len(numbers), -1), strict=True):
                scores[number] = float(1 / (1 + np.exp(-np.float64(row[-1]))))
        return {"scores": scores, "tokens": _tokens(encodings)}

    def _outputs(self, encodings: Sequence[Encoding]) -> Iterator[tuple[list[int], Any, Any]]:
        """Yields the graph's first output for portions of the texts, with their numbers and which tokens are theirs."""
        for numbers in _portions([len(one.ids) for one in encodings]):
            some = [encodings[number] for number in numbers]
            longest = max(len(one.ids) for one in some)
            inputs = {
                "input_ids": _matrix([one.ids for one in some], longest),
                "attention_mask": _matrix([one.attention_mask for one in some], longest),
                "token_type_ids": _matrix([one.type_ids for one in some], longest),
            }
            [output, *_] = self._session.run(None, {name: inputs[name] for name in self._inputs})
            yield numbers, inputs["attention_mask"], np.asarray(output, dtype=np.float32)

    def _pool(self, output: Any, mask: Any) -> Any:
        if self._first_token:
            return output[:, 0]
        weights = mask[:, :, None].astype(np.float32)
        return (output * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1.0)


def _portions(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yields the numbers of texts by length, in portions of _TOKENS_AT_ONCE."""
    portion: list[int] = []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        if portion and lengths[number] * (len(portion) + 1) > _TOKENS_AT_ONCE:
            yield portion
            portion = []
        portion.append(number)
    if portion:
        yield portion


def _matrix(rows: Sequence[Sequence[int]], longest: int) -> Any:
    return np.array([[*row, *[0] * (longest - len(row))] for row in rows], dtype=np.int64)


def _tokens(encodings: Sequence[Encoding]) -> int:
    return sum(len(one.ids) for one in encodings)


def _load(options: Mapping[str, Any]) -> Model | str:
    """Returns the model, or why there is none. The files are read before the process is closed in."""
    graph, tokenizer = Path(options["graph"]).read_bytes(), Path(options["tokenizer"]).read_bytes()
    limit_process(memory_bytes=options["memory_bytes"])
    try:
        model = Model(graph, tokenizer, options)
        model.embed(["ready"])
    except Exception as error:  # noqa: BLE001 - of ONNX Runtime and tokenizers, whose errors have no common class
        return f"{type(error).__name__}: {error}"[:500]
    return model


def _answer(model: Model, request: Mapping[str, Any]) -> dict[str, Any]:
    if "query" in request:
        return model.compare(request["query"], request["texts"])
    return model.embed(request["texts"])


def main() -> None:
    """Loads, then reads and answers until stdin ends; a failure ends the process."""
    model = _load(json.loads(sys.argv[1]))
    if isinstance(model, str):
        _say({"error": model})
        return
    _say({"ready": True})
    while line := sys.stdin.buffer.readline():
        _say(_answer(model, json.loads(line)))


def _say(answer: Mapping[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(answer)}\n")
    sys.stdout.flush()
