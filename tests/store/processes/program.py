"""A process that shares the store: does what its standard input says, one JSON line each.

Run by `peer.Peer`.  The answer to a line is one JSON line as well; `work` keeps reporting what was
acknowledged until the process is killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

from penstock.domain.errors import QueueNotFound
from penstock.domain.message.draft import Draft
from penstock.domain.message.lease import Lease, Verb
from penstock.domain.queue.queue import Queue, QueueSettings
from penstock.ports.store import Acted, Sent
from penstock.runtime.waiting_claims import WaitingClaims
from penstock.settings.values import Settings, StoreSettings
from penstock.wiring.broker import Broker, open_broker

THREADS = 3
FOR_EVER_MS = 60_000


class Program:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def queue(self, name: str = "shared") -> Queue:
        try:
            return self._broker.directory.load(name).result()
        except QueueNotFound:
            return self._broker.queues.put(name, QueueSettings()).result().view.queue

    def make_queue(self) -> str:
        return self.queue().name

    def send(self, count: int = 1, queue: str = "shared") -> list[str]:
        messages, target = self._broker.messages, self.queue(queue)
        drafts = [messages.draft(target, Draft(body=json.dumps(i))) for i in range(count)]
        answers = messages.send(drafts).result()
        assert all(isinstance(answer, Sent) for answer in answers), answers
        return [draft.message.id for draft in drafts]

    def complete(self, limit: int = 3) -> list[str]:
        messages = self._broker.messages
        held = [
            message for message, _ in messages.claim(self.queue(), limit=limit).result().messages
        ]
        if held:
            acts = [messages.plan(Lease.of(message), Verb.COMPLETE) for message in held]
            answers = messages.act(acts).result()
            assert all(isinstance(answer, Acted) for answer in answers), answers
        return [message.id for message in held]

    def turn_over(self, count: int) -> dict[str, list[str]]:
        """Sends, claims and completes from a few threads at once."""
        found: dict[str, list[str]] = {"sent": [], "completed": [], "errors": []}

        def one() -> None:
            try:
                for _ in range(count):
                    found["sent"] += self.send()
                    found["completed"] += self.complete()
            except Exception as error:
                found["errors"].append(f"{type(error).__name__}: {error}")

        in_threads(one)
        return found

    def work(self) -> None:
        """Work until this process is killed."""
        while True:
            say({"sent": self.send(2)})
            say({"completed": self.complete()})

    def hear(self) -> list[str]:
        """Waits for a message without polling: only a wake-up brings it."""
        queue = self.queue()

        async def wait() -> list[str]:
            room = WaitingClaims(
                self._broker.messages, self._broker.clock, most=1, poll_ms=FOR_EVER_MS
            )
            self._broker.listen(room.on_wakeup)
            waiting = asyncio.ensure_future(room.claim(queue, wait_ms=FOR_EVER_MS))
            await asyncio.sleep(0)
            # In the same batch as its first claim, which therefore certainly finds nothing.
            await self._broker.messages.claim(queue)
            say("waiting")
            return [message.id for message, _ in (await waiting).messages]

        return asyncio.run(wait())

    def stop_with_the_lock(self) -> str:
        """Stops in the middle of a transaction, until it gets SIGCONT."""

        def stop(_session: Any) -> None:
            say("stopping")
            # To this very thread: it must not continue before the process is stopped.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

        self._broker.store.write(stop).result()
        return "continued"

    def leave_a_child(self) -> None:
        """Fork a child that outlives us, in the middle of a transaction."""

        def fork(_session: Any) -> None:
            child = os.fork()
            if not child:
                signal.pause()
            say(child)
            signal.pause()

        self._broker.store.write(fork).result()

    def now(self) -> int:
        return self._broker.clock.now()


class Shop(Program):
    """An application with orders of its own in the same file, one for each message."""

    def __init__(self, broker: Broker, path: str) -> None:
        super().__init__(broker)
        self._path = path
        with closing(sqlite3.connect(path, timeout=FOR_EVER_MS / 1000)) as db, db:
            db.execute("CREATE TABLE IF NOT EXISTS orders (id TEXT, is_done INTEGER)")

    def trade(self, count: int) -> dict[str, list[str]]:
        """Orders and handles from a few threads at once, each with a connection of its own."""
        found: dict[str, list[str]] = {"sent": [], "completed": [], "errors": []}

        def one() -> None:
            try:
                with closing(sqlite3.connect(self._path)) as db:
                    for _ in range(count):
                        found["sent"] += self._order(db)
                        found["completed"] += self._handle(db)
            except Exception as error:
                found["errors"].append(f"{type(error).__name__}: {error}")

        in_threads(one)
        return found

    def work_in_transactions(self) -> None:
        """Work until this process is killed."""
        with closing(sqlite3.connect(self._path)) as db:
            while True:
                say({"sent": self._order(db)})
                say({"completed": self._handle(db)})

    def _order(self, db: sqlite3.Connection) -> list[str]:
        messages, target = self._broker.messages, self.queue()
        draft = messages.draft(target, Draft(body="{}"))
        with db:
            [sent] = messages.send_in(db, [draft])
            assert isinstance(sent, Sent), sent
            db.execute("INSERT INTO orders VALUES (?, 0)", [sent.id])
        return [sent.id]

    def _handle(self, db: sqlite3.Connection) -> list[str]:
        messages = self._broker.messages
        held = [message for message, _ in messages.claim(self.queue()).result().messages]
        for message in held:
            with db:
                [acted] = messages.act_in(db, [messages.plan(Lease.of(message), Verb.COMPLETE)])
                assert isinstance(acted, Acted), acted
                db.execute("UPDATE orders SET is_done = is_done + 1 WHERE id = ?", [message.id])
        return [message.id for message in held]


def in_threads(do: Callable[[], None]) -> None:
    threads = [threading.Thread(target=do) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def say(what: Any) -> None:
    # One call, so that a kill leaves whole lines only.
    os.write(1, (json.dumps(what) + "\n").encode())


def main(folder: str, how: str) -> None:
    path = f"{folder}/penstock.db"
    url = f"sqlite:///{path}" + ("?checksums=off" if how == "plain" else "")
    broker = open_broker(Settings(store=StoreSettings(url=url)))
    program = Program(broker) if how != "plain" else Shop(broker, path)
    say("ready")
    for line in sys.stdin:
        order = json.loads(line)
        do: Callable[..., Any] = getattr(program, order.pop("do"))
        say(do(**order))
    broker.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
