"""Builds the ONNX graph of a BERT encoder from a model's configuration and weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class Graph:
    """Collects the nodes and weights of an ONNX graph; methods return the name of what they add."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: dict[str, Any] = {}

    def weight(self, name: str, value: Any) -> str:
        """Adds a constant, once."""
        if name not in self.weights:
            self.weights[name] = numpy_helper.from_array(numpy.ascontiguousarray(value), name)
        return name

    def node(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Adds an operation."""
        output = output or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def save(self, path: Path, *, dim: int) -> None:
        """Writes the graph, whose output is `dim` numbers for each token."""
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in INPUTS]
        shape: list[str | int | None] = ["batch", "tokens", dim]
        outputs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, shape)]
        graph = helper.make_graph(self.nodes, "encoder", inputs, outputs, list(self.weights.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        onnx.checker.check_model(model)
        onnx.save(model, path)


def write(config: Mapping[str, Any], weights: Mapping[str, Any], path: Path) -> None:
    """Writes the encoder with these weights, equal to the original to 1e-6; KeyError if a weight is missing."""
    width, heads = config["hidden_size"], config["num_attention_heads"]
    graph = Graph()

    def linear(x: str, name: str) -> str:
        product = graph.node("MatMul", x, graph.weight(f"{name}.weight", weights[f"{name}.weight"].T))
        return graph.node("Add", product, graph.weight(f"{name}.bias", weights[f"{name}.bias"]))

    def layer_norm(x: str, name: str) -> str:
        scale, bias = (graph.weight(f"{name}.{part}", weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return graph.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=config["layer_norm_eps"])

    def embedding(kind: str) -> str:
        return graph.weight(kind, weights[f"embeddings.{kind}_embeddings.weight"])

    def split(x: str, order: list[int]) -> str:
        shape = graph.weight("per_head", numpy.array([0, 0, heads, width // heads]))
        return graph.node("Transpose", graph.node("Reshape", x, shape), perm=order)

    length = graph.node("Shape", "input_ids", start=1, end=2)
    zero = graph.weight("zero", numpy.array([0]))
    positions = graph.node("Slice", embedding("position"), zero, length, zero)
    words = graph.node("Gather", embedding("word"), "input_ids")
    kinds = graph.node("Gather", embedding("token_type"), "token_type_ids")
    state = layer_norm(graph.node("Add", graph.node("Add", words, kinds), positions), "embeddings.LayerNorm")

    # Padding: -1e9 is added to each score for a masked token, so that softmax makes it 0.
    present = graph.node("Unsqueeze", graph.node("Cast", "attention_mask", to=TensorProto.FLOAT),
                         graph.weight("axes", numpy.array([1, 2])))  # fmt: skip
    absent = graph.node("Sub", graph.weight("one", numpy.float32(1)), present)
    mask = graph.node("Mul", absent, graph.weight("far", numpy.float32(-1e9)))
    scale = graph.weight("scale", numpy.float32((width // heads) ** -0.5))
    for layer in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{layer}"
        query = split(linear(state, f"{name}.attention.self.query"), [0, 2, 1, 3])
        key = split(linear(state, f"{name}.attention.self.key"), [0, 2, 3, 1])
        value = split(linear(state, f"{name}.attention.self.value"), [0, 2, 1, 3])
        scores = graph.node("Add", graph.node("Mul", graph.node("MatMul", query, key), scale), mask)
        mixed = graph.node("MatMul", graph.node("Softmax", scores, axis=-1), value)
        joined = graph.node("Reshape", graph.node("Transpose", mixed, perm=[0, 2, 1, 3]),
                            graph.weight("joined", numpy.array([0, 0, width])))  # fmt: skip
        attended = graph.node("Add", linear(joined, f"{name}.attention.output.dense"), state)
        state = layer_norm(attended, f"{name}.attention.output.LayerNorm")
        inner = graph.node("Gelu", linear(state, f"{name}.intermediate.dense"))
        state = layer_norm(graph.node("Add", linear(inner, f"{name}.output.dense"), state), f"{name}.output.LayerNorm")
    graph.node("Identity", state, output="last_hidden_state")
    graph.save(path, dim=width)
