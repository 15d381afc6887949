"""The child process that makes vectors: texts in, int8 vectors out.

    python -m csmd.embedding.worker MODEL_DIR --idle-s 300        serves; makes no network connection, ever
    python -m csmd.embedding.worker --fetch DEST --model NAME     the explicit network step

A frame is a byte for its kind, its length in four bytes (big endian) and a body. The first frame is `ready` (or
`failed`, if the model cannot be loaded); then each request gets exactly one reply, in order:

    E texts -> V  dim bytes per text, int8        texts: a count, then length and UTF-8 for each
    B texts -> V  the same, in two passes at a time, while the machine is idle
    C texts -> N  int32 per text, -1 unknown      ready: the dimension, uint32
            -> F  one sentence, UTF-8             (this request failed; the worker continues)

The worker ends at the end of stdin (the daemon is gone), after `idle-s` seconds without a request (exit code 0 for
both), at a malformed frame (2), or if the model cannot be loaded (1).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import signal
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from csmd.config import FETCHABLE
from csmd.embedding import token_counter
from csmd.embedding.installed_models import MODEL_FILES, replace_directory
from csmd.embedding.token_counter import Counter
from csmd.errors import BadInput

#: The kinds of requests.
EMBED = b"E"
EMBED_BOTH = b"B"
COUNT = b"C"
#: The kinds of replies.
READY = b"R"
VECTORS = b"V"
COUNTS = b"N"
FAILED = b"F"
REPLY_KINDS = (READY, VECTORS, COUNTS, FAILED)
HEAD = struct.Struct(">cI")
SIZE = struct.Struct(">I")
MAX_FRAME_BYTES = 64 * 1024 * 1024

#: Characters of a text that are embedded; the rest would not fit into the model's window.
TEXT_CHARS = 2_000
#: Bounds of one pass through the model: its memory grows with the number of texts times the longest one.
BATCH_TEXTS = 8
BATCH_CHARS = 12_000
#: Most passes at a time, each of which takes 30 MB.
MAX_PASSES = min(2, os.cpu_count() or 1)
#: A component of a normalised vector is almost never beyond 0.25; larger ones are clipped.
INT8_SCALE = 127 / 0.25

NETWORK_S = 10.0
OFFLINE_HINT = "without the hub, `csmd model add` reads one from a folder or a Python package"

#: Turns texts into vectors.
Encoder = Callable[[list[str]], list[bytes]]
# --- frames, used by both ends ---------------------------------------------------------------


def frame(kind: bytes, body: bytes) -> bytes:
    """Returns one frame, ready to be written."""
    return HEAD.pack(kind, len(body)) + body


def pack_texts(texts: Sequence[str]) -> bytes:
    """Returns the body of a request; characters that UTF-8 cannot encode (lone surrogates) become `?`."""
    encoded = [text.encode("utf-8", "replace") for text in texts]
    return SIZE.pack(len(encoded)) + b"".join(SIZE.pack(len(part)) + part for part in encoded)


def unpack_texts(body: bytes) -> list[str]:
    """Returns the texts in a request's body; BadInput unless they fill it exactly."""
    texts: list[str] = []
    try:
        (count,) = SIZE.unpack_from(body)
        offset = SIZE.size
        for _ in range(count):
            (size,) = SIZE.unpack_from(body, offset)
            offset += SIZE.size
            texts.append(str(body[offset : offset + size], "utf-8"))
            offset += size
    except (struct.error, UnicodeDecodeError) as error:
        raise BadInput(f"a request that is not a list of texts: {error}") from error
    if offset != len(body):
        raise BadInput(f"a request of {len(body)} bytes whose texts take {offset}")
    return texts


def batches(lengths: Sequence[int], *, texts: int, chars: int) -> Iterator[list[int]]:
    """Yields the indexes of `lengths`, shortest first, in groups of at most `texts` members and `chars` characters.

    Neighbours in length share a batch because each is padded to its longest; one text alone may pass `chars`.
    """
    group: list[int] = []
    total = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if group and (len(group) == texts or total + lengths[index] > chars):
            yield group
            group = []
            total = 0
        group.append(index)
        total += lengths[index]
    if group:
        yield group


# --- serving ---------------------------------------------------------------------------------


def serve(source: int, sink: int, *, dim: int, encode: Encoder, count: Counter | None, idle_s: float) -> None:
    """Answers requests from the file descriptor `source` on `sink` until its end, or for `idle_s` seconds without one.

    `encode` gets at most BATCH_TEXTS texts at a time, from MAX_PASSES threads. BadInput at a malformed frame: nothing
    after it can be trusted.
    """
    _write(sink, READY, SIZE.pack(dim))
    while (request := _read_request(source, idle_s)) is not None:
        kind, texts = request
        try:
            if kind == COUNT:
                counts = [-1 if count is None else count(text) for text in texts]
                _write(sink, COUNTS, struct.pack(f">{len(counts)}i", *counts))
            else:
                _write(sink, VECTORS, _encode_all(texts, encode, MAX_PASSES if kind == EMBED_BOTH else 1))
        except BrokenPipeError:
            return
        except Exception as error:  # noqa: BLE001 - a text that the model cannot process fails one request
            _write(sink, FAILED, _describe_error(error))


def _encode_all(texts: list[str], encode: Encoder, passes: int) -> bytes:
    cut = [text[:TEXT_CHARS] for text in texts]
    vectors = [b""] * len(cut)

    def encode_group(group: list[int]) -> None:
        for index, vector in zip(group, encode([cut[index] for index in group]), strict=True):
            vectors[index] = vector

    together = batches([len(text) for text in cut], texts=BATCH_TEXTS * passes, chars=BATCH_CHARS * passes)
    if passes == 1:
        for group in together:
            encode_group(group)
        return b"".join(vectors)
    with ThreadPoolExecutor(passes) as pool:  # a pass computes without the interpreter's lock
        for group in together:
            # Each gets short and long texts, so that all end at about the same time.
            list(pool.map(encode_group, [part for part in (group[first::passes] for first in range(passes)) if part]))
    return b"".join(vectors)


def _read_request(source: int, idle_s: float) -> tuple[bytes, list[str]] | None:
    head = _read(source, HEAD.size, idle_s, may_end=True)
    if not head:
        return None
    kind, size = HEAD.unpack(head)
    if kind not in (EMBED, EMBED_BOTH, COUNT) or size > MAX_FRAME_BYTES:
        raise BadInput(f"a frame of kind {kind!r} and {size} bytes")
    return kind, unpack_texts(_read(source, size, idle_s))


def _read(source: int, size: int, idle_s: float, *, may_end: bool = False) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        readable, _, _ = select.select([source], [], [], idle_s)
        part = os.read(source, min(size - len(parts), 1 << 20)) if readable else b""
        if not part:
            if may_end and not parts:
                return b""
            raise BadInput(f"{len(parts)} of {size} bytes, then nothing")
        parts += part
    return bytes(parts)


def _write(sink: int, kind: bytes, body: bytes) -> None:
    rest = memoryview(frame(kind, body))
    while rest:
        rest = rest[os.write(sink, rest) :]


def _describe_error(error: BaseException) -> bytes:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300].encode("utf-8", "replace")


# --- the model -------------------------------------------------------------------------------


def load_encoder(model_dir: Path) -> Encoder:
    """Loads the model in `model_dir` (MODEL_FILES; mean pooling, normalised), which runs on one thread."""
    import numpy
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    name = f"csmd/{model_dir.name}"  # fastembed refuses a name that it knows, and would fetch its model
    # `dim` is not used by fastembed; the real one is that of the first vector.
    TextEmbedding.add_custom_model(
        model=name, pooling=PoolingType.MEAN, normalization=True, sources=ModelSource(hf=name), dim=0,
        model_file="model.onnx",
    )  # fmt: skip
    model = TextEmbedding(name, specific_model_path=str(model_dir), local_files_only=True, threads=1, cuda=False)

    def encode(texts: list[str]) -> list[bytes]:
        rows = numpy.stack(list(model.embed(texts, batch_size=BATCH_TEXTS))).astype(numpy.float32)
        scaled = numpy.clip(numpy.rint(numpy.nan_to_num(rows) * INT8_SCALE), -127, 127).astype(numpy.int8)
        return [row.tobytes() for row in scaled]

    return encode


def refuse_network() -> None:
    """Makes looking up a name or connecting impossible in this process, whatever the defaults of libraries are."""
    refused = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "urllib.Request"}

    def hook(event: str, _arguments: object) -> None:
        if event in refused:
            raise PermissionError("the embedding worker makes no network connection")

    sys.addaudithook(hook)


def _serve_model(model_dir: Path, idle_s: float) -> int:
    # Frames have descriptors of their own: what a library prints goes to stderr, and its stdin is empty.
    source = os.dup(0)
    sink = os.dup(1)
    os.dup2(2, 1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ^C reaches the whole terminal; the end of stdin ends the worker
    refuse_network()
    try:
        encode = load_encoder(model_dir)
        dim = len(encode(["warm"])[0])  # the first pass is several times slower, so no request waits for it
    except Exception as error:  # noqa: BLE001 - whatever the libraries raise, the daemon must learn it
        with contextlib.suppress(BrokenPipeError):
            _write(sink, FAILED, _describe_error(error))
        return 1
    try:
        count = token_counter.load_lazily(token_counter.ranks_file(model_dir.parent))
        serve(source, sink, dim=dim, encode=encode, count=count, idle_s=idle_s)
    except BrokenPipeError:
        return 0
    except BadInput as error:
        sys.stderr.write(f"embedding worker: {error.what}\n")
        return 2
    return 0


# --- the explicit network step ---------------------------------------------------------------


def fetch(dest: Path, name: str) -> None:
    """Fetches the model `name` into `dest` and tiktoken's ranks into its parent; writes a line per file to stderr.

    BadInput for a name that cannot be used, OSError (or an error of the libraries) if the network fails.
    """
    from http.client import HTTPException

    if name not in FETCHABLE:
        raise BadInput(f"{name} cannot be fetched; csmd knows where to find {', '.join(FETCHABLE)}")
    from fastembed import TextEmbedding
    from huggingface_hub import hf_hub_download, model_info
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    (supported,) = (model for model in TextEmbedding.list_supported_models() if model["model"] == name)
    repository = supported["sources"]["hf"]
    # Asked first because it is not retried: a download would try for 23 s before it fails.
    revision = model_info(repository, timeout=NETWORK_S, token=False).sha
    dest.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=dest.parent) as scratch:
        staged = Path(scratch) / "staged"
        staged.mkdir(mode=0o700)
        options: dict[str, Any] = {"revision": revision, "local_dir": Path(scratch) / "hub"}
        options |= {"etag_timeout": NETWORK_S, "token": False}
        for target in reversed(MODEL_FILES):  # the small ones first, so that a missing one fails at once
            path = supported["model_file"] if target == "model.onnx" else target
            file = Path(hf_hub_download(repository, path, **options))
            file.chmod(0o600)
            file.rename(staged / target)
            _print(f"{target}  {(staged / target).stat().st_size:,} bytes")
        replace_directory(staged, dest)
    try:
        _fetch_ranks(dest.parent)
    except (OSError, HTTPException, BadInput) as error:
        _print(f"tiktoken's data could not be fetched ({error}); tokens will be estimated")


def _fetch_ranks(models: Path) -> None:
    import urllib.request

    with urllib.request.urlopen(token_counter.CL100K_URL, timeout=NETWORK_S) as answer:  # noqa: S310 - https
        data = answer.read(MAX_FRAME_BYTES)
    if not token_counter.is_valid(data):
        raise BadInput("its hash is wrong")
    token_counter.write(models, data)
    _print(f"tiktoken cl100k  {len(data):,} bytes")


def _print(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves or fetches, as the arguments say; returns the exit code."""
    parser = argparse.ArgumentParser(prog="csmd.embedding.worker")
    parser.add_argument("model_dir", nargs="?", type=Path)
    parser.add_argument("--idle-s", type=float, default=300.0)
    parser.add_argument("--fetch", type=Path, metavar="DEST")
    parser.add_argument("--model", default="sentence-transformers/all-MiniLM-L6-v2")
    chosen = parser.parse_args(arguments)
    if chosen.fetch is None:
        if chosen.model_dir is None:
            parser.error("a MODEL_DIR, or --fetch DEST")
        return _serve_model(chosen.model_dir, chosen.idle_s)
    try:
        fetch(chosen.fetch.absolute(), chosen.model)
    except BadInput as error:
        _print(error.what)
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001 - each library has its own errors for a failed download
        _print(f"{chosen.model} could not be fetched ({_describe_error(error).decode()}); {OFFLINE_HINT}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
