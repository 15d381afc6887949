"""Installed embedding models: their files, the chosen one, and models of an endpoint."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from csmd import wire
from csmd.errors import ConfigError
from csmd.paths import model_folder

MODEL_FILES = ("model.onnx", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "config.json")
IDENTITY_FILE = "csmd-model.txt"
#: In a model's folder instead of MODEL_FILES: the endpoint that makes its vectors, and their dimension.
ENDPOINT_FILE = "endpoint.json"
#: Next to the models' folders: the name of the model that was chosen instead of the configuration's.
CHOSEN_FILE = "chosen"


def check_model_dir(folder: Path) -> None:
    """Raises ConfigError naming the missing files unless `folder` holds all of MODEL_FILES."""
    missing = [name for name in MODEL_FILES if not (folder / name).is_file()]
    if missing:
        hint = f"name a folder that holds {', '.join(MODEL_FILES)}"
        raise ConfigError(f"{folder}: no {', '.join(missing)}", hint=hint)


def installed_model(models: Path, name: str) -> Path | None:
    """Returns the folder of the chosen model, else of `name`; None if it is missing or incomplete."""
    for candidate in (chosen_model(models), name):
        folder = models / _folder_name(candidate) if candidate else None
        if folder is not None and (is_endpoint(folder) or all((folder / file).is_file() for file in MODEL_FILES)):
            return folder
    return None


def is_endpoint(folder: Path) -> bool:
    """Whether an endpoint makes the vectors of this model."""
    return (folder / ENDPOINT_FILE).is_file()


def write_endpoint(models: Path, name: str, endpoint: Mapping[str, Any]) -> None:
    """Creates or updates the folder of a model whose vectors (`dim` numbers each) an endpoint makes."""
    folder = models / _folder_name(name)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(folder / ENDPOINT_FILE, wire.dumps(endpoint).encode())


def read_endpoint(folder: Path) -> dict[str, Any]:
    """Returns the endpoint in a model's folder, as `write_endpoint` stored it."""
    return dict(wire.loads((folder / ENDPOINT_FILE).read_bytes()))


def update_endpoints(models: Path, provider: str, **changed: str) -> None:
    """Changes the address or the key for the models whose vectors this provider makes."""
    for file in models.glob(f"{provider}__*/{ENDPOINT_FILE}"):
        write_endpoint(models, file.parent.name.replace("__", "/"), read_endpoint(file.parent) | changed)


def remove_endpoints(models: Path, provider: str) -> None:
    """Removes the models whose vectors this provider makes: nothing more is sent to it."""
    for file in models.glob(f"{provider}__*/{ENDPOINT_FILE}"):
        shutil.rmtree(file.parent)


def chosen_model(models: Path) -> str:
    """Returns the name of the model that was chosen instead of the configuration's; "" if none was."""
    try:
        return (models / CHOSEN_FILE).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def choose_model(models: Path, name: str) -> None:
    """Chooses the model `name` instead of the configuration's; "" returns to the configured model."""
    if not name:
        (models / CHOSEN_FILE).unlink(missing_ok=True)
        return
    _folder_name(name)  # refuses a name that no model can have
    replace_file(models / CHOSEN_FILE, f"{name}\n".encode())


def add_model(source: Path, models: Path, *, name: str) -> Path:
    """Copies the model in `source` to its folder in `models`, replacing an older one, and returns the folder.

    It is readable by the user alone and installed atomically. Raises ConfigError if `source` is not a model's folder.
    """
    check_model_dir(source)
    models.mkdir(parents=True, exist_ok=True, mode=0o700)
    dest = models / _folder_name(name)
    with tempfile.TemporaryDirectory(prefix=".add-", dir=models) as scratch:
        staged = Path(scratch) / dest.name
        staged.mkdir(mode=0o700)
        for file in MODEL_FILES:
            with (source / file).open("rb") as old, (staged / file).open("xb") as new:
                shutil.copyfileobj(old, new, 1 << 20)
                os.fchmod(new.fileno(), 0o600)
                os.fsync(new.fileno())
        model_identity(staged)
        replace_directory(staged, dest)
    return dest


def model_identity(folder: Path) -> str:
    """Returns `name@12 hex` of a model: its name and the SHA-256 of model.onnx; every vector is stored with it.

    Cached in IDENTITY_FILE with the size and time of the model.onnx.
    """
    if is_endpoint(folder):
        return f"{folder.name.replace('__', '/')}@endpoint-{read_endpoint(folder)['dim']}"
    identity_path = folder / IDENTITY_FILE
    model = folder / "model.onnx"
    state = model.stat()
    stamp = f"{state.st_size} {state.st_mtime_ns}"
    with contextlib.suppress(OSError, ValueError):
        identity, cached_stamp = identity_path.read_text(encoding="utf-8").split("\n")[:2]
        if cached_stamp == stamp:
            return identity
    with model.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    identity = f"{folder.name.replace('__', '/')}@{digest[:12]}"
    with contextlib.suppress(OSError):  # a folder that cannot be written only costs time
        replace_file(identity_path, f"{identity}\n{stamp}\n".encode())
    return identity


def _folder_name(name: str) -> str:
    folder = model_folder(name)
    if not folder or folder.startswith(".") or "\0" in folder:
        hint = "write e.g. sentence-transformers/all-MiniLM-L6-v2"
        raise ConfigError(f"{name!r} cannot be the name of a model", hint=hint)
    return folder


def replace_file(path: Path, data: bytes) -> None:
    """Writes a file atomically and durably; only the user can read it."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # with mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def replace_directory(staged: Path, dest: Path) -> None:
    """Renames the finished directory `staged` to `dest` next to it, replacing an older `dest`."""
    older = staged.with_name(f"{staged.name}.older")
    if dest.exists():
        dest.rename(older)
    staged.rename(dest)
    shutil.rmtree(older, ignore_errors=True)
