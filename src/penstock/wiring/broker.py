"""The composition root: the only place that knows which classes stand behind the ports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Protocol

from penstock.domain.errors import InvalidRequest, StoreRefused
from penstock.domain.optional_parts import not_installed
from penstock.domain.store.store_time import plan_start
from penstock.outbound.clock import ServerClock, SteadyClock, SystemClock, WallClock, wall_ms
from penstock.outbound.dice import SystemDice
from penstock.outbound.secret_file import read_secret_file
from penstock.outbound.table_files import GoldFiles
from penstock.ports.clock import Clock, Dice
from penstock.ports.store import Store
from penstock.ports.wakeups import Wakeups
from penstock.runtime.circuit_duties import circuit_duties
from penstock.runtime.clock_watch import ClockWatch
from penstock.runtime.duties import Every, Expirer, Mover, Pruner, Reaper
from penstock.runtime.loop import Duty, DutyLoop
from penstock.runtime.lost_workers import WorkerReaper
from penstock.runtime.minute_counters import Sampler
from penstock.runtime.pusher.tally import Tally
from penstock.runtime.pusher.thread import PusherThread
from penstock.runtime.recurring import Recurrer
from penstock.runtime.worker_queues import NodeQueues
from penstock.services.bus import Bus
from penstock.services.circuits.circuits import Circuits
from penstock.services.circuits.insight import CircuitInsight
from penstock.services.circuits.job_routes import JobRoutes
from penstock.services.directory import Directory
from penstock.services.documents import Documents
from penstock.services.facts import Facts
from penstock.services.graphs import Graphs
from penstock.services.history import Insight
from penstock.services.keys import Keyring, Keys
from penstock.services.logins import Logins
from penstock.services.messages import Messages
from penstock.services.moves import Moves
from penstock.services.notifications import Notifications
from penstock.services.overview import Watch
from penstock.services.queues import Queues
from penstock.services.recurring import Recurring
from penstock.services.routes import Routes
from penstock.services.scaling import Scaling
from penstock.services.selection import Picking
from penstock.services.tables import Gold
from penstock.services.workers import Workers
from penstock.settings import Settings, is_loopback
from penstock.store.maintenance import clock_mark
from penstock.store.maintenance.migrate import Migration
from penstock.store.store import SqlStore, migrate_sqlite, open_sqlite
from penstock.supervision.health import Health
from penstock.wiring.archive import archive_loop
from penstock.wiring.pushing import pusher_thread

_MOVES_EVERY_MS = 500  # so long a new move may wait for its first step
_KEYS_EVERY_MS = 1_000
_CIRCUITS_EVERY_MS = 1_000  # so long a node may go by old routes and settings
_CLOCK_EVERY_MS = 30_000
_STUCK_FACTOR = 10  # a duty makes several requests; each may take as long as one may wait
CLOSING_WAIT_MS = 2_000  # for the store, once the process is to end


class OpenStore(Store, Wakeups, Protocol):
    """A store that also tells what became ready, and how its threads are."""

    @property
    def health(self) -> Health: ...
    def limit_waits(self, timeout_ms: int) -> None:
        """From now on a request waits at most that long, also one that waits already."""
        ...


class Broker:
    """Everything a process needs to serve queues, whatever edge it is used through."""

    def __init__(
        self,
        store: OpenStore,
        clock: Clock,
        settings: Settings,
        *,
        wall: Clock | None = None,
        file_secret: bytes | None = None,
    ) -> None:
        """`wall`: the real time, to compare with that of other machines; the store's if None."""
        self.dice = dice = SystemDice()
        self.settings = settings
        self.store = store
        self.health = store.health
        self.stuck_ms = _STUCK_FACTOR * settings.store.request_timeout_ms
        self.clock = clock
        self.wall = wall or clock
        self.directory = Directory(store, clock, auto_create=settings.queues.auto_create)
        self.queues = Queues(store, clock, self.directory)
        self.messages = Messages(store, clock, dice, settings.limits, self.directory)
        self.picking = Picking(store, clock, settings.limits, self.messages)
        self.circuit_insight = CircuitInsight(store)
        folder = settings.insights_folder
        self.gold = Gold(GoldFiles(folder), folder=str(folder))
        self.moves = Moves(store, clock, dice)
        self.recurring = Recurring(store, clock, dice, settings.limits)
        self.insight = Insight(store, clock, settings.limits)
        self.watch = Watch(store, clock)
        self.graphs = Graphs(store, clock)
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
        self.documents = Documents(store, clock)
        self.routes = Routes(store, clock, denied=settings.push.deny or "")
        self.circuits = Circuits(store, clock, self.routes)
        self.job_routes = JobRoutes(store)
        self.pushed = Tally()
        self.scaling = Scaling(store, clock)
        self.keys = Keys(store, clock, dice, file_secret=file_secret)
        self.keyring = Keyring(self.keys, required=settings.auth.required)
        self.logins = Logins(store, self.keyring, clock, dice, valid_ms=settings.console.session_ms)
        self._loop = DutyLoop(self._duties(), clock, health=self.health, stuck_ms=self.stuck_ms)
        self._refreshing = Lock()
        self._pushing: PusherThread | None = None
        self._archiving: DutyLoop | None = None

    def listen(self, callback: Callable[[Mapping[int, int]], None]) -> None:
        self.store.listen(callback)

    def start_duties(self) -> None:
        self._loop.start()

    def start_pushing(self) -> None:
        """Deliveries go out from this node, unless it is set to leave that to others."""
        if self._pushing is None and self.settings.push.enabled and self.settings.push.deliver:
            self._pushing = pusher_thread(self)
            self._pushing.start()

    def start_archiving(self) -> None:
        """What has happened goes to the lake, if that is wanted; once for the whole cluster."""
        if self._archiving is None and self.settings.archive.enabled:
            self._archiving = archive_loop(self)
            self._archiving.start()

    def run_duties(self) -> None:
        """Here and now, where nothing runs by itself: what is due by the clock."""
        self._loop.run_due()

    def close(self) -> None:
        """Stop what runs by itself, finish what was taken, close the store.

        A store that does not answer is not waited for.
        """
        self.store.limit_waits(CLOSING_WAIT_MS)
        if self._pushing is not None:
            self._pushing.stop()
        if self._archiving is not None:
            self._archiving.stop()
        self._loop.stop()
        self.store.close()

    def refresh_keys(self) -> None:
        with self._refreshing:  # else what was read first might be taken last
            self.keyring.take(self.keys.all().result())

    def refuse_open_door(self) -> None:
        """Other addresses than this machine's own are served only to those who show a key."""
        host = self.settings.server.host
        if not is_loopback(host) and not self.keyring.is_needed:
            raise InvalidRequest(
                f"{host} can be reached from outside: make a key first "
                "(penstock keys create --name NAME --role ROLE --store URL)"
            )

    def _duties(self) -> list[Duty]:
        every_ms = self.settings.queues.reap_interval_ms
        duties: list[Duty] = [
            Reaper(self.store, every_ms=every_ms),
            Expirer(self.store, every_ms=every_ms),
            Pruner(
                self.store,
                retention_days=self.settings.history.retention_days,
                is_archived=self.settings.archive.enabled,
            ),
            Mover(self.moves, every_ms=_MOVES_EVERY_MS),
            WorkerReaper(self.workers, every_ms=self.settings.workers.reap_interval_ms),
            Recurrer(self.recurring),
            Sampler(
                self.store,
                retention_days=self.settings.samples.retention_days,
                is_archived=self.settings.archive.enabled,
            ),
            NodeQueues(self.bus, self.queues, every_ms=self.settings.workers.reap_interval_ms),
            Every("keys", _KEYS_EVERY_MS, self.refresh_keys),
            Every("circuits", _CIRCUITS_EVERY_MS, self.circuits.refresh),
            *circuit_duties(self.circuits),
        ]
        if isinstance(self.clock, ServerClock):
            duties.append(Every("clock", _CLOCK_EVERY_MS, self._follow_database_clock))
        elif self.wall is not self.clock:
            duties.append(ClockWatch(self.wall, every_ms=_CLOCK_EVERY_MS))
        return duties

    def _follow_database_clock(self) -> None:
        assert isinstance(self.clock, ServerClock)
        self.clock.adjust()
        clock_mark.follow(self.store, now=self.clock.now())


def open_broker(settings: Settings, *, clock: Clock | None = None) -> Broker:
    """Open the store and put everything together; nothing runs by itself yet."""
    secret_file = settings.auth.secret_file
    file_secret = None if secret_file is None else read_secret_file(secret_file)
    store = _open(settings)
    wall: Clock | None = None
    if clock is None:
        clock, wall = _start_clock(store, settings)
    broker = Broker(store, clock, settings, wall=wall, file_secret=file_secret)
    broker.refresh_keys()
    broker.circuits.refresh()
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
    from penstock.store.postgres import store as postgres_store

    return postgres_store.migrate(settings.store_url)


def _open(settings: Settings) -> SqlStore:
    path = settings.sqlite_path
    if path is not None:
        return open_sqlite(
            path,
            now=wall_ms(),
            checksums=settings.sqlite_checksums,
            patience_ms=settings.store.patience_ms,
            request_timeout_ms=settings.store.request_timeout_ms,
        )
    try:
        from penstock.store.postgres import store as postgres_store
    except ImportError as error:
        raise StoreRefused(not_installed("PostgreSQL support", "postgres")) from error
    return postgres_store.open_postgres(
        settings.store_url, request_timeout_ms=settings.store.request_timeout_ms
    )


def _start_clock(store: SqlStore, settings: Settings) -> tuple[Clock, Clock]:
    """The store's time, and the real one."""
    if settings.sqlite_path is None:
        from penstock.store.postgres import store as postgres_store

        shared = ServerClock(postgres_store.clock_of(store))
        clock_mark.follow(store, now=shared.now())
        return shared, shared
    start = plan_start(store.high_water, wall_ms())
    if start.is_set_back and not store.is_alone():  # another process goes by that time
        start = plan_start(start.mark, start.wall, max_carry_ms=start.ahead_ms)
    clock = SystemClock(
        start.now,
        floor=store.high_water,
        agree=lambda offset: store.agree(offset, lambda session: clock_mark.begin(session, start)),
    )
    return clock, WallClock()
