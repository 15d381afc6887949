"""The worker process that gets vectors from an endpoint, with the protocol of csmd.embedding.worker.

    python -m csmd.curator.endpoint MODEL_DIR --idle-s 300

MODEL_DIR holds what csmd.embedding.installed_models.write_endpoint wrote.
"""

from __future__ import annotations

import math
import os
import signal
import struct
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from csmd.curator import calls
from csmd.curator.contract import ProviderFailed
from csmd.curator.process import Order, Vectors
from csmd.embedding import installed_models, worker
from csmd.errors import BadInput
from csmd.privacy.redaction import redact

#: Seconds that an endpoint has for one request.
TIMEOUT_S = 20.0
#: Seconds after a failure in which an endpoint is not asked; searches then use words only.
PAUSE_S = 60.0


@dataclass(slots=True)
class EndpointEncoder:
    """Gets vectors from an endpoint; after a failure it waits."""

    _order: Order
    _dim: int
    _retry_at: float = 0.0

    def encode(self, texts: list[str]) -> list[bytes]:
        """Returns the vectors of texts, which are redacted once more before they are sent.

        Raises ProviderFailed if there are none.
        """
        if time.monotonic() < self._retry_at:
            raise ProviderFailed("dead", f"failed recently; retried after {PAUSE_S:.0f} s")
        try:
            reply = calls.carry_out(replace(self._order, texts=[redact(text, Counter()) for text in texts]))
            if not isinstance(reply, Vectors) or any(len(vector) != self._dim for vector in reply.vectors):
                raise ProviderFailed("babble", f"returned vectors of another size than {self._dim}")
        except ProviderFailed:
            self._retry_at = time.monotonic() + PAUSE_S
            raise
        return [quantise(vector) for vector in reply.vectors]


def quantise(vector: Sequence[float]) -> bytes:
    """Returns a vector in the stored form: normalised, times INT8_SCALE, clipped, as signed bytes."""
    scale = worker.INT8_SCALE / (math.sqrt(sum(number * number for number in vector)) or 1.0)
    return struct.pack(f"{len(vector)}b", *(max(-127, min(127, round(number * scale))) for number in vector))


def main(folder: Path, idle_s: float) -> int:
    """Serves on standard input and output; returns the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ^C reaches the whole terminal; the end of stdin ends the worker
    spec = installed_models.read_endpoint(folder)
    dim = int(spec.pop("dim"))
    encoder = EndpointEncoder(Order(**spec, timeout_s=TIMEOUT_S), dim)
    try:
        worker.serve(os.dup(0), os.dup(1), dim=dim, encode=encoder.encode, count=None, idle_s=idle_s)
    except BrokenPipeError:
        return 0
    except BadInput:
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), float(sys.argv[3])))
