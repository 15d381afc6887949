"""The embedding models on disk: complete or not there, readable by the user alone, named by their content."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from csmd.errors import ConfigError
from csmd.store.embed_worker import MODEL_FILES, put_in_place

IDENTITY_FILE = "csmd-model.txt"
#: Beside the models' folders: the name of the one that was chosen instead of the configuration's.
CHOSEN_FILE = "chosen"


def check_model_dir(folder: Path) -> None:
    """ConfigError, naming what is missing, unless `folder` holds all of MODEL_FILES."""
    missing = [name for name in MODEL_FILES if not (folder / name).is_file()]
    if missing:
        raise ConfigError(f"{folder}: no {', '.join(missing)}", hint=f"a model's folder holds {', '.join(MODEL_FILES)}")


def installed(models: Path, name: str) -> Path | None:
    """The folder of the model that is used: the chosen one, else `name`; None when it is not there or not complete."""
    for one in (chosen(models), name):
        folder = models / _folder_name(one) if one else None
        if folder is not None and all((folder / file).is_file() for file in MODEL_FILES):
            return folder
    return None


def chosen(models: Path) -> str:
    """The name of the model that was chosen instead of the configuration's; "" for none."""
    try:
        return (models / CHOSEN_FILE).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def choose(models: Path, name: str) -> None:
    """Has the model `name` used instead of the configuration's, or with "" that one again."""
    if not name:
        (models / CHOSEN_FILE).unlink(missing_ok=True)
        return
    _folder_name(name)
    part = models / f".{CHOSEN_FILE}"
    part.write_text(f"{name}\n", encoding="utf-8")
    part.chmod(0o600)
    part.replace(models / CHOSEN_FILE)


def add_model(source: Path, models: Path, *, name: str) -> Path:
    """Copy the model in `source` to its folder under `models`, replacing an older one; the folder.

    Readable by the user alone; complete or not there. ConfigError when `source` is not a model's folder.
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
        put_in_place(staged, dest)
    return dest


def model_identity(folder: Path) -> str:
    """`name@12 hex` of the model in `folder`: its name and the SHA-256 of model.onnx; every vector carries it.

    Kept in IDENTITY_FILE with the size and time of the model.onnx it was computed from.
    """
    known = folder / IDENTITY_FILE
    model = folder / "model.onnx"
    state = model.stat()
    stamp = f"{state.st_size} {state.st_mtime_ns}"
    with contextlib.suppress(OSError, ValueError):
        identity, of = known.read_text(encoding="utf-8").split("\n")[:2]
        if of == stamp:
            return identity
    with model.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    identity = f"{folder.name.replace('__', '/')}@{digest[:12]}"
    with contextlib.suppress(OSError):  # a folder that cannot be written costs the time, not the answer
        known.write_text(f"{identity}\n{stamp}\n", encoding="utf-8")
        known.chmod(0o600)
    return identity


def _folder_name(name: str) -> str:
    folder = name.replace("/", "__")
    if not folder or folder.startswith(".") or "\0" in folder:
        raise ConfigError(f"{name!r} cannot be the name of a model", hint="e.g. sentence-transformers/all-MiniLM-L6-v2")
    return folder
