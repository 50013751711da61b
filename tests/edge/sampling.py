"""Samples that are written down when a test says so."""

from __future__ import annotations

from penstock.domain.limits import MINUTE
from penstock.domain.samples import ALL
from penstock.runtime.sampler import Sampler
from tests.edge.http.waiting import eventually
from tests.edge.live import LiveServer


def sample(server: LiveServer) -> None:
    """What the duty does by itself, here and now; the server's own may have been faster."""
    store, now = server.broker.store, server.clock.now()
    Sampler(store, retention_days=90).tick(now)

    def is_written() -> bool:
        total = store.read(lambda s: s.samples.before(ALL, at=now)).result()
        return total is not None and total.minute_at == now - now % MINUTE

    eventually(is_written)  # of all queues together, which comes last
