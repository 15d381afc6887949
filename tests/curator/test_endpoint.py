"""An endpoint's vectors are kept as a model's own, and an endpoint that fails is left alone for a while."""

from __future__ import annotations

import math
import os
import struct
import sys
from pathlib import Path

import pytest
from curator_fixtures import row
from scripted_models import Answer, ScriptedModels

from csmd.curator.contract import ProviderFailed
from csmd.curator.endpoint import EndpointEncoder, quantise
from csmd.curator.process import Order
from csmd.embedding import installed_models
from csmd.embedding.worker import INT8_SCALE
from csmd.embedding.worker_client import Embedder
from csmd.errors import EmbeddingUnavailable


def made_for(server: ScriptedModels, name: str = "ollama", dim: int = 8) -> EndpointEncoder:
    order = Order(provider=name, place=row(server, name).place, model="small", key_from="", timeout_s=10)
    return EndpointEncoder(order, dim)


def test_a_vector_is_kept_normalised_and_clipped() -> None:
    found = struct.unpack("4b", quantise([3.0, 0.0, -4.0, 0.01]))
    assert found == (127, 0, -127, round(0.01 / math.hypot(3, 4, 0.01) * INT8_SCALE))
    assert quantise([0.0, 0.0]) == bytes(2)


@pytest.mark.invariant("What a language model is asked is redacted once more")
def test_texts_are_redacted_once_more_before_they_go_for_vectors() -> None:
    token = "ghp_" + "Ab3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6"
    with ScriptedModels() as server:
        made = made_for(server).encode([f"the deploy failed with {token}", "ok"])
        assert server.asked[0]["input"] == ["the deploy failed with [redacted:github-token]", "ok"]
    assert [len(vector) for vector in made] == [8, 8]


@pytest.mark.parametrize("answer", [Answer(status=500), Answer(dim=4)])
def test_an_endpoint_that_fails_is_not_asked_again_at_once(answer: Answer) -> None:
    with ScriptedModels([answer, Answer()]) as server:
        asked = made_for(server)
        with pytest.raises(ProviderFailed):
            asked.encode(["one"])
        with pytest.raises(ProviderFailed, match="failed recently"):
            asked.encode(["one"])
        assert len(server.asked) == 1


def test_the_worker_asks_its_endpoint_and_what_is_sent_is_counted(tmp_path: Path) -> None:
    def command(folder: Path) -> tuple[list[str], dict[str, str]]:
        return [sys.executable, "-P", "-m", "csmd.curator.endpoint", str(folder), "--idle-s", "60"], dict(os.environ)

    with ScriptedModels([Answer(), Answer(), Answer(status=500)]) as server:
        place = row(server, "openai").place
        found = {"provider": "openai", "place": "http://127.0.0.1:1", "model": "small", "key_from": "", "dim": 8}
        installed_models.write_endpoint(tmp_path, "openai/small", found)
        installed_models.update_endpoints(tmp_path, "openai", place=place)
        folder = installed_models.installed_model(tmp_path, "openai/small")
        assert folder is not None and installed_models.model_identity(folder) == "openai/small@endpoint-8"
        embedder = Embedder(folder, idle_s=60, environment=dict(os.environ), endpoint_command=command)
        try:
            assert [len(vector) for vector in embedder.embed(["one", "two"], deadline_s=30)] == [8, 8]
            assert (embedder.take_sent_tokens(), embedder.take_sent_tokens()) == (2, 0)
            embedder.embed(["three"], deadline_s=30)
            with pytest.raises(EmbeddingUnavailable, match="HTTP 500"):
                embedder.embed(["four"], deadline_s=30)
        finally:
            embedder.close()
    installed_models.remove_endpoints(tmp_path, "openai")
    assert installed_models.installed_model(tmp_path, "openai/small") is None
