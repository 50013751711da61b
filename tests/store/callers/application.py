"""An application as a process of its own, to be killed between its steps.

python -m tests.store.callers.application BACKEND WAY WHERE QUEUE_NO
"""

from __future__ import annotations

import sys
from pathlib import Path

from penstock.domain.queue.queue import Queue
from penstock.store.postgres.store import open_postgres
from penstock.store.store import open_sqlite
from tests.clocks import NOON
from tests.factories import a_new_message
from tests.store.callers.transaction_kinds import ADD, TRANSACTION_KINDS


def main(backend: str, name: str, where: str, queue_no: str) -> None:
    store = open_sqlite(Path(where)) if backend == "sqlite" else open_postgres(where, lanes=1)
    transaction = TRANSACTION_KINDS[backend][name](where)
    queue = store.read(lambda s: s.queues.get(int(queue_no))).result()
    _step(transaction, store, queue, "lost")
    sys.stdin.readline()  # where it is killed, or continues
    transaction.commit()
    print("committed", flush=True)
    sys.stdin.readline()


def _step(transaction, store, queue: Queue, order: str) -> None:
    transaction.run(ADD.format(order))
    [sent] = transaction.send(store, [a_new_message(queue, now=NOON)])
    print(sent.id, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
