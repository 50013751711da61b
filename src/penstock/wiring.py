"""The composition root: the only place that knows which classes stand behind the ports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from penstock.domain.errors import InvalidRequest, StoreRefused
from penstock.outbound.clock import ServerClock, SteadyClock, SystemClock, wall_ms
from penstock.outbound.dice import SystemDice
from penstock.ports.clock import Clock, Dice
from penstock.ports.store import Store
from penstock.ports.wakeups import Wakeups
from penstock.runtime.duties import Every, Expirer, Mover, Pruner, Reaper
from penstock.runtime.loop import Duty, DutyLoop
from penstock.runtime.lost_workers import WorkerReaper
from penstock.runtime.node_queues import NodeQueues
from penstock.runtime.recurring import Recurrer
from penstock.services.bus import Bus
from penstock.services.directory import Directory
from penstock.services.facts import Facts
from penstock.services.insight import Insight
from penstock.services.keys import Keyring, Keys
from penstock.services.messages import Messages
from penstock.services.moves import Moves
from penstock.services.notifications import Notifications
from penstock.services.queues import Queues
from penstock.services.recurring import Recurring
from penstock.services.workers import Workers
from penstock.settings import Settings, is_loopback
from penstock.store.migrations import Migration
from penstock.store.sql_store import migrate_sqlite, open_sqlite

_MOVES_EVERY_MS = 500  # so long a new move may wait for its first step
_KEYS_EVERY_MS = 1_000
_CLOCK_EVERY_MS = 30_000


class OpenStore(Store, Wakeups, Protocol):
    """A store that also tells what became ready."""


class Broker:
    """Everything a process needs to serve queues, whatever edge it is used through."""

    def __init__(self, store: OpenStore, clock: Clock, settings: Settings) -> None:
        self.dice = dice = SystemDice()
        self.settings = settings
        self.store = store
        self.clock = clock
        self.directory = Directory(store, clock, auto_create=settings.queues.auto_create)
        self.queues = Queues(store, clock, self.directory)
        self.messages = Messages(store, clock, dice, settings.limits)
        self.moves = Moves(store, clock, dice)
        self.recurring = Recurring(store, clock, dice, settings.limits)
        self.insight = Insight(store, clock, settings.limits)
        self.notifications = Notifications(store, clock, dice, settings.limits, self.messages)
        self.bus = Bus(store, clock, dice, settings.limits, self.directory)
        self.workers = Workers(
            store,
            clock,
            dice,
            settings.limits,
            valid_ms=settings.workers.valid_ms,
            everybodys=(settings.tasks.queue,),
        )
        self.facts = Facts(store, settings.limits)
        self.keys = Keys(store, clock, dice)
        self.keyring = Keyring(self.keys, required=settings.auth.required)
        self._loop = DutyLoop(self._duties(), clock)

    def listen(self, callback: Callable[[Mapping[int, int]], None]) -> None:
        self.store.listen(callback)

    def start_duties(self) -> None:
        self._loop.start()

    def run_duties(self) -> None:
        """Here and now, where nothing runs by itself: what is due by the clock."""
        self._loop.run_due()

    def close(self) -> None:
        """Stop what runs by itself, finish what was taken, close the store."""
        self._loop.stop()
        self.store.close()

    def refresh_keys(self) -> None:
        self.keyring.take(self.keys.all().result())

    def refuse_open_door(self) -> None:
        """Other addresses than this machine's own are served only to those who show a key."""
        host = self.settings.server.host
        if not is_loopback(host) and not self.keyring.is_needed:
            raise InvalidRequest(
                f"{host} can be reached from outside: make a key first (penstock keys create)"
            )

    def _duties(self) -> list[Duty]:
        every_ms = self.settings.aweq.reap_interval_ms
        duties: list[Duty] = [
            Reaper(self.store, every_ms=every_ms),
            Expirer(self.store, every_ms=every_ms),
            Pruner(self.store, retention_days=self.settings.history.retention_days),
            Mover(self.moves, every_ms=_MOVES_EVERY_MS),
            WorkerReaper(self.workers, every_ms=self.settings.workers.reap_interval_ms),
            Recurrer(self.recurring),
            NodeQueues(self.bus, self.queues, every_ms=self.settings.workers.reap_interval_ms),
            Every("keys", _KEYS_EVERY_MS, self.refresh_keys),
        ]
        if isinstance(self.clock, ServerClock):
            duties.append(Every("clock", _CLOCK_EVERY_MS, self.clock.adjust))
        return duties


def open_broker(settings: Settings, *, clock: Clock | None = None) -> Broker:
    """Open the store and put everything together; nothing runs by itself yet."""
    store, own_clock = _open(settings)
    broker = Broker(store, clock or own_clock, settings)
    broker.refresh_keys()
    return broker


def own_clock() -> Clock:
    """For those who have no store to ask."""
    return SystemClock()


def own_dice() -> Dice:
    return SystemDice()


def steady_clock() -> Clock:
    """One for the whole machine, so that processes can compare; it does not tell the time."""
    return SteadyClock()


def migrate(settings: Settings) -> list[Migration]:
    """Bring the store's schema up to date; returns what was applied."""
    path = settings.sqlite_path
    if path is not None:
        return migrate_sqlite(
            path,
            now=wall_ms(),
            checksums=settings.sqlite_checksums,
            patience_ms=settings.store.patience_ms,
        )
    from penstock.store import postgres_store

    return postgres_store.migrate(settings.store_url)


def _open(settings: Settings) -> tuple[OpenStore, Clock]:
    path = settings.sqlite_path
    if path is not None:
        store = open_sqlite(
            path,
            now=wall_ms(),
            checksums=settings.sqlite_checksums,
            patience_ms=settings.store.patience_ms,
        )
        return store, SystemClock(store.high_water, agree=store.agree)
    try:
        from penstock.store import postgres_store
    except ImportError as error:
        raise StoreRefused(
            "PostgreSQL needs a part more: pip install penstock[postgres]"
        ) from error
    shared = postgres_store.open_postgres(settings.store_url)
    return shared, ServerClock(postgres_store.clock_of(shared))
