"""The broker's composition root: opens the store and connects services, duties and clocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock
from typing import Protocol

from penstock.domain.bus.formats import Arns
from penstock.domain.errors import InvalidRequest
from penstock.domain.store.store_time import plan_start
from penstock.outbound import machine
from penstock.outbound.clock import ServerClock, SteadyClock, SystemClock, WallClock, wall_ms
from penstock.outbound.dice import SystemDice
from penstock.outbound.secret_file import read_secret_file
from penstock.ports.clock import Clock, Dice
from penstock.ports.store import Store
from penstock.ports.ticket import Endings, Wakeups
from penstock.runtime.circuit_duties import circuit_duties
from penstock.runtime.duties import (
    ClockWatch,
    Expirer,
    Mover,
    PeriodicDuty,
    Pruner,
    Reaper,
    ScheduleDuty,
)
from penstock.runtime.loop import Duty, DutyLoop
from penstock.runtime.minute_counters import Sampler
from penstock.runtime.pusher.tally import PushTally
from penstock.runtime.pusher.thread import PusherThread
from penstock.runtime.waiting_results import WaitingResults
from penstock.runtime.worker_duties import WorkerQueueReaper, WorkerReaper
from penstock.services.access import Keyring, KeyService, LoginService
from penstock.services.answers import AnswerService
from penstock.services.bulk.moves import MoveService
from penstock.services.bulk.selection import SelectionService
from penstock.services.bus import Bus
from penstock.services.circuits.circuits import CircuitService
from penstock.services.circuits.details import CircuitDetails
from penstock.services.circuits.job_routes import JobRoutes
from penstock.services.directory import Directory
from penstock.services.documents import DocumentService
from penstock.services.envelopes import EnvelopeSigner
from penstock.services.errors import ErrorService
from penstock.services.flows.flows import FlowService
from penstock.services.flows.members import FlowMemberService
from penstock.services.history import FactService, HistoryService
from penstock.services.jobs.attempt_logs import AttemptLogService
from penstock.services.jobs.results import ResultService
from penstock.services.jobs.steps import StepService
from penstock.services.messages import MessageService
from penstock.services.notifications import NotificationService
from penstock.services.overview import Graphs, OverviewService
from penstock.services.queues import QueueService
from penstock.services.recurring import RecurringService
from penstock.services.routes import DeliveryService, RouteService
from penstock.services.scaling import ScalingService
from penstock.services.topics import TopicService
from penstock.services.workers import TaskLeases, WorkerService
from penstock.settings import Settings, is_loopback
from penstock.store.maintenance import clock_mark
from penstock.store.maintenance.migrate import Migration
from penstock.store.store import SqlStore, migrate_sqlite, open_sqlite
from penstock.supervision.health import NodeHealth
from penstock.wiring.key_pairs import LazyKeyPairs
from penstock.wiring.lake_writers import archive_loop
from penstock.wiring.pushing import pusher_thread
from penstock.wiring.server_stores import server_stores
from penstock.wiring.sql import sql_of_server
from penstock.wiring.tables import open_tables

_MOVES_EVERY_MS = 500  # the longest wait of a new move for its first step
_KEYS_EVERY_MS = 1_000
_CIRCUITS_EVERY_MS = 1_000  # how long a node may use outdated routes and settings
_CLOCK_EVERY_MS = 30_000
_STUCK_FACTOR = 10  # a duty makes several requests; each may take the full request timeout
CLOSING_WAIT_MS = 2_000  # how long a closing process waits for the store


class OpenStore(Store, Wakeups, Endings, Protocol):
    """A store that also reports wake-ups, endings and the health of its threads."""

    @property
    def health(self) -> NodeHealth: ...
    def limit_waits(self, timeout_ms: int) -> None:
        """Limit how long requests wait, including those that are waiting."""
        ...


class Broker:
    """Everything a process needs to serve queues, through any edge."""

    def __init__(
        self,
        store: OpenStore,
        clock: Clock,
        settings: Settings,
        *,
        wall: Clock | None = None,
        file_secret: bytes | None = None,
    ) -> None:
        """`wall`: the real time, to compare with other machines; the store's time if None."""
        self.dice = dice = SystemDice()
        self.settings = settings
        self.store = store
        self.health = store.health
        self.stuck_ms = _STUCK_FACTOR * settings.store.request_timeout_ms
        self.clock = clock
        self.wall = wall or clock
        self.directory = Directory(store, clock, auto_create=settings.queues.auto_create)
        self.queues = QueueService(store, clock, self.directory)
        self.messages = MessageService(store, clock, dice, settings.limits, self.directory)
        self.steps = StepService(store, clock, settings.limits)
        self.errors = ErrorService(store)
        self.selection = SelectionService(store, clock, settings.limits, self.messages)
        self.circuit_details = CircuitDetails(store)
        self.tables = open_tables(settings.insights_folder)
        self.sql = sql_of_server(settings)
        self.moves = MoveService(store, clock, dice)
        self.flow_members = FlowMemberService(self.store)
        self.flows = FlowService(
            store, clock, dice, settings.limits, auto_create=settings.queues.auto_create
        )
        self.recurring = RecurringService(store, clock, dice, settings.limits)
        self.history = HistoryService(store, clock, settings.limits)
        self.attempt_logs = AttemptLogService(store, clock, settings.limits)
        self.results = ResultService(store)
        self.waiting_results = WaitingResults(
            store,
            store,
            clock,
            most=settings.limits.max_waiting_results,
            poll_ms=settings.wakeups.poll_ms,
            health=store.health,
        )
        self.overview = OverviewService(store, clock)
        self.graphs = Graphs(store, clock)
        self.notifications = NotificationService(store, clock, dice, settings.limits, self.messages)
        arns = Arns(settings.sqs.region, settings.sqs.account)
        self.routes = RouteService(store, clock, denied=settings.push.deny or "")
        self.envelope_signer = EnvelopeSigner(store, clock, LazyKeyPairs())
        self.topics = TopicService(
            store,
            clock,
            dice,
            self.directory,
            prepare_envelopes=self.envelope_signer.ensure,
            check_address=self.routes.check_endpoint,
        )
        self.bus = Bus(store, clock, dice, settings.limits, arns)
        self.workers = WorkerService(
            store,
            clock,
            dice,
            settings.limits,
            valid_ms=settings.workers.valid_ms,
            shared_queues=(settings.tasks.queue,),
        )
        self.task_leases = TaskLeases(
            self.workers,
            self.directory,
            queue=settings.tasks.queue,
            grace_ms=settings.workers.grace_ms,
            most_ms=settings.limits.max_lease_ms,
        )
        self.facts = FactService(store, settings.limits)
        self.documents = DocumentService(store, clock)
        self.deliveries = DeliveryService(self.messages, self.queues, self.routes, settings.limits)
        self.circuits = CircuitService(store, clock, self.routes)
        self.job_routes = JobRoutes(store)
        self.pushed = PushTally()
        self.scaling = ScalingService(store, clock)
        self.answers = AnswerService(
            store,
            self.tables,
            self.circuits.breaker,
            self.scaling,
            disk=partial(machine.disk_of, settings.sqlite_path),
        )
        self.keys = KeyService(store, clock, dice, file_secret=file_secret)
        self.keyring = Keyring(self.keys, required=settings.auth.required)
        self.logins = LoginService(
            store, self.keyring, clock, dice, valid_ms=settings.console.session_ms
        )
        self._loop = DutyLoop(self._duties(), clock, health=self.health, stuck_ms=self.stuck_ms)
        self._refreshing = Lock()
        self._pushing: PusherThread | None = None
        self._archiving: DutyLoop | None = None

    def listen(self, callback: Callable[[Mapping[int, int]], None]) -> None:
        self.store.listen(callback)

    def start_duties(self) -> None:
        self._loop.start()

    def start_refreshing(self) -> None:
        """Run only the duties that keep this process up to date; another one does the rest."""
        self._loop = DutyLoop(
            self._refreshing_duties(), self.clock, health=self.health, stuck_ms=self.stuck_ms
        )
        self._loop.start()

    def start_pushing(self) -> None:
        """Push deliveries from this node, unless settings leave that to other nodes."""
        if self._pushing is None and self.settings.push.enabled and self.settings.push.deliver:
            self._pushing = pusher_thread(self)
            self._pushing.start()

    def start_archiving(self) -> None:
        """Write history to the lake if enabled; one node of the cluster does it at a time."""
        if self._archiving is None and self.settings.archive.enabled:
            self._archiving = archive_loop(self)
            self._archiving.start()

    def run_duties(self) -> None:
        """Run due duties now, in a process that does not run them in the background."""
        self._loop.run_due()

    def close(self) -> None:
        """Stop background threads, finish accepted requests, close the store.

        Waits only briefly for a store that does not answer.
        """
        self.sql.close()
        self.waiting_results.close()
        self.store.limit_waits(CLOSING_WAIT_MS)
        if self._pushing is not None:
            self._pushing.stop()
        if self._archiving is not None:
            self._archiving.stop()
        self._loop.stop()
        self.store.close()

    def refresh_keys(self) -> None:
        with self._refreshing:  # otherwise an older read might replace a newer one
            self.keyring.take(self.keys.all().result())

    def refuse_public_without_keys(self) -> None:
        """Raise InvalidRequest if a public address would be served without any API key."""
        host = self.settings.server.host
        if not is_loopback(host) and not self.keyring.is_needed:
            raise InvalidRequest(
                f"{host} can be reached from outside: create a key first "
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
            ScheduleDuty(self.recurring),
            Sampler(
                self.store,
                retention_days=self.settings.samples.retention_days,
                is_archived=self.settings.archive.enabled,
            ),
            WorkerQueueReaper(
                self.bus, self.queues, every_ms=self.settings.workers.reap_interval_ms
            ),
            *circuit_duties(self.circuits),
            *self._refreshing_duties(),
        ]
        if not isinstance(self.clock, ServerClock) and self.wall is not self.clock:
            duties.append(ClockWatch(self.wall, every_ms=_CLOCK_EVERY_MS))
        return duties

    def _refreshing_duties(self) -> list[Duty]:
        """Duties of every process: each has its own copy of keys and circuits, and a clock."""
        duties: list[Duty] = [
            PeriodicDuty("keys", _KEYS_EVERY_MS, self.refresh_keys),
            PeriodicDuty("circuits", _CIRCUITS_EVERY_MS, self.circuits.refresh),
        ]
        if isinstance(self.clock, ServerClock):
            duties.append(PeriodicDuty("clock", _CLOCK_EVERY_MS, self._follow_database_clock))
        return duties

    def _follow_database_clock(self) -> None:
        assert isinstance(self.clock, ServerClock)
        self.clock.adjust()
        clock_mark.follow(self.store, now=self.clock.now())


def open_broker(settings: Settings, *, clock: Clock | None = None) -> Broker:
    """Open the store and compose the broker; no background thread runs yet."""
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


def open_existing(settings: Settings) -> Broker:
    """Like `open_broker`; raises InvalidRequest instead of creating a missing file."""
    require_store(settings)
    return open_broker(settings)


def require_store(settings: Settings) -> None:
    path = settings.sqlite_path
    if path is not None and not path.exists():
        raise InvalidRequest(
            f"there is no store at {path}; name it with --data or --store "
            "(`penstock serve` and `penstock migrate` create one)"
        )


def own_clock() -> Clock:
    """For processes without a store."""
    return SystemClock()


def own_dice() -> Dice:
    return SystemDice()


def wall_clock() -> Clock:
    """The machine's current time, for comparing with that of other machines."""
    return WallClock()


def steady_clock() -> Clock:
    """Shared by all processes of the machine, for comparing; its values are not dates."""
    return SteadyClock()


def migrate(settings: Settings) -> list[Migration]:
    """Bring the store's schema up to date; returns the applied migrations."""
    path = settings.sqlite_path
    if path is not None:
        return migrate_sqlite(
            path,
            now=wall_ms(),
            checksums=settings.sqlite_checksums,
            patience_ms=settings.store.patience_ms,
        )
    return server_stores(settings.store_url).migrate(settings.store_url)


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
    url = settings.store_url
    return server_stores(url).open(url, request_timeout_ms=settings.store.request_timeout_ms)


def _start_clock(store: SqlStore, settings: Settings) -> tuple[Clock, Clock]:
    """The store's clock and the wall clock."""
    if settings.sqlite_path is None:
        shared = ServerClock(server_stores(settings.store_url).clock_of(store))
        clock_mark.follow(store, now=shared.now())
        return shared, shared
    start = plan_start(store.clock_mark, wall_ms())
    if start.is_set_back and not store.is_alone():  # another process uses that time
        start = plan_start(start.mark, start.wall, max_carry_ms=start.ahead_ms)
    clock = SystemClock(
        start.now,
        floor=store.clock_mark,
        agree=lambda offset: store.agree(offset, lambda session: clock_mark.begin(session, start)),
    )
    return clock, WallClock()
