"""Failover drill: a node works through PgBouncer and HAProxy on a Patroni cluster that fails over.

    make drill

The primary is killed with all its processes, a synchronous standby takes over, and the pooler is
restarted. Meanwhile a node sends messages; nothing that was acknowledged may be missing. Debian's
packages are installed on demand, as root.
"""

from __future__ import annotations

import sys
import threading
import time

from penstock.domain.errors import StoreUnavailable
from penstock.domain.queue.queue import QueueSettings
from penstock.ports.store import Claim, Sent
from penstock.store.postgres.store import PostgresStore, migrate, open_postgres
from tests.clocks import NOON
from tests.drill.cluster import PROGRAMS, DrillCluster
from tests.factories import a_new_message
from tests.support import debian
from tests.support.pgbouncer import PgBouncer

_WAIT_S = 60.0
_FAILOVER_S = 120.0


class Drill:
    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._is_over = False
        self._queue = store.write(
            lambda s: s.queues.add("drill", QueueSettings(), now=NOON)
        ).result(_WAIT_S)
        self.acknowledged: set[str] = set()
        self.refused = 0
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def await_more(self, count: int) -> float:
        """Returns how many seconds passed until that many more were acknowledged."""
        began = time.monotonic()
        wanted = len(self.acknowledged) + count
        while len(self.acknowledged) < wanted:
            if time.monotonic() > began + _FAILOVER_S:
                raise SystemExit("FAILED: the node did not recover in time")
            threading.Event().wait(0.05)
        return time.monotonic() - began

    def missing(self) -> set[str]:
        """Acknowledged messages that no claim returns."""
        self._is_over = True
        self._thread.join(_WAIT_S)
        found: set[str] = set()
        while True:
            wanted = Claim(queue_no=self._queue.queue_no, now=NOON, limit=1_000)
            claimed = self._store.claim(wanted).result(_WAIT_S).messages
            found |= {message.id for message, _ in claimed}
            if not claimed:
                return self.acknowledged - found

    def _send(self) -> None:
        while not self._is_over:
            try:
                [answer] = self._store.send([a_new_message(self._queue)]).result(_WAIT_S)
            except StoreUnavailable:
                self.refused += 1
                threading.Event().wait(0.02)
            else:
                assert isinstance(answer, Sent)
                self.acknowledged.add(answer.id)


def main() -> int:
    for program, package in {**PROGRAMS, "pgbouncer": "pgbouncer"}.items():
        if debian.find((program,)) is None:
            for reason in debian.install(package):
                print(reason, file=sys.stderr)
    with DrillCluster() as cluster, PgBouncer(cluster.port) as pooler:
        url = pooler.url("postgres") + "?timeout_ms=3000"
        migrate(url)
        store = open_postgres(url, lanes=2)
        try:
            drill = Drill(store)
            drill.await_more(100)
            first = cluster.primary()
            assert first is not None
            cluster.await_synchronous()
            print(f"killing the primary, {first}, after {len(drill.acknowledged)} messages")
            cluster.kill(first)
            seconds = drill.await_more(100)
            print(f"{cluster.primary()} took over: {seconds:.1f} s for 100 messages")
            pooler.stop()
            pooler.start()
            print(f"the pooler was restarted: {drill.await_more(100):.1f} s for 100 messages")
            missing = drill.missing()
        finally:
            store.close()
    print(
        f"acknowledged {len(drill.acknowledged)}, refused {drill.refused}, missing {len(missing)}"
    )
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
