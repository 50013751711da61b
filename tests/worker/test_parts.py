"""The small parts of a worker: prefetch, job table, beats, and leftovers of a crash."""

from __future__ import annotations

from penstock.domain.errors import StoreUnavailable
from penstock.domain.message.lease import Verb
from penstock.worker.application import RegistryStatus
from penstock.worker.assignment import MAX_PREFETCH, Prefetch
from penstock.worker.beats import Beats
from penstock.worker.log import OutageReporter
from penstock.worker.processes.child import acts_for
from penstock.worker.processes.job_table import EntryState, JobTable, TableEntry
from penstock.worker.processes.process_exit import LOOP_FAILED, ProcessExit

# ---- prefetch


def test_short_jobs_are_claimed_ahead_and_long_ones_are_not():
    short, long = Prefetch(), Prefetch()
    for now in range(0, 1_000, 10):
        short.note(50, now=now)
        long.note(1 if now % 500 == 0 else 0, now=now)

    assert short.ahead == 5 * 50  # as many as finish in 50 ms
    assert long.ahead <= 2


def test_no_more_is_claimed_ahead_than_the_table_can_take():
    pace = Prefetch()
    for now in range(0, 100, 10):
        pace.note(10_000, now=now)

    assert pace.ahead == MAX_PREFETCH


# ---- the job table


def test_a_process_can_read_the_job_table_of_another():
    table = JobTable.create(4)
    other = JobTable.inherited(table.fd)

    table.set_worker("ada")
    table.set_ahead(17)
    table.note(2, receipt="r" * 54, id="an-id", kind="mail.welcome")
    table.begin(2, now=1_000, deadline=6_000, is_sandboxed=False)

    assert other.entries() == [
        TableEntry(EntryState.RUNNING, 1_000, 6_000, "r" * 54, "an-id", "mail.welcome")
    ]
    assert (other.worker_id, other.ahead_ms) == ("ada", 17)


def test_a_place_is_held_runs_has_ended_and_is_free_again():
    table = JobTable.create(1)
    states = []

    table.note(0, receipt="r", id="i", kind="k")
    states.append(table.entries()[0].state)
    table.begin(0, now=1, deadline=None, is_sandboxed=True)
    states.append(table.entries()[0].state)
    table.end(0)
    states.append(table.entries()[0].state)
    table.free(0)

    assert states == [EntryState.WAITING, EntryState.SANDBOXED, EntryState.ENDED]
    assert table.entries() == []


def test_a_receipt_or_a_kind_of_any_length_does_no_harm():
    table = JobTable.create(2)

    table.note(0, receipt="x" * 1_000, id="i", kind="k")
    table.begin(0, now=1, deadline=None, is_sandboxed=False)
    table.note(1, receipt="x", id="i" * 100, kind="ü" * 200)

    [entry] = table.entries()
    assert entry.receipt == "x"
    assert entry.kind.startswith("üü")


def test_only_what_runs_in_the_process_itself_is_overdue():
    table = JobTable.create(3)
    for place, is_sandboxed in enumerate((False, True, False)):
        table.note(place, receipt=str(place), id="i", kind="k")
        table.begin(place, now=0, deadline=None if place == 2 else 100, is_sandboxed=is_sandboxed)

    assert [entry.receipt for entry in table.overdue(100)] == ["0"]
    assert table.overdue(99) == []


# ---- leftovers of a crashed process


def test_a_running_job_is_reported_as_crashed_and_the_others_are_released():
    entries = [_entry("ran", EntryState.RUNNING), _entry("line", EntryState.WAITING)]
    entries += [_entry("apart", EntryState.SANDBOXED), _entry("done", EntryState.ENDED)]

    acts = acts_for(entries, ProcessExit(-11, 50 * 1024), now=3_500, worker_id="ada")

    assert {act.receipt: act.verb for act in acts} == {
        "ran": Verb.CRASH,
        "line": Verb.RELEASE,
        "apart": Verb.RELEASE,
        "done": Verb.RELEASE,
    }
    assert acts[0].text == (
        "its worker process exited: signal SIGSEGV, peak memory 50 MB; "
        "worker ada, handler mail, 2.5 s running"
    )


def test_an_overdue_job_that_blocks_its_process_has_timed_out_and_its_neighbours_are_released():
    entries = [_entry("stuck", EntryState.RUNNING), _entry("beside", EntryState.RUNNING)]

    acts = acts_for(entries, ProcessExit(-9, 0), now=0, worker_id="ada", overdue=["stuck"])

    assert [act.verb for act in acts] == [Verb.TIME_OUT, Verb.RELEASE]


def test_a_process_killed_while_stopping_blames_no_job():
    acts = acts_for(
        [_entry("ran", EntryState.RUNNING)],
        ProcessExit(-9, 0),
        now=0,
        worker_id="",
        at_shutdown=True,
    )

    assert [act.verb for act in acts] == [Verb.RELEASE]


# ---- beats


class FakeRegistry:
    def __init__(self) -> None:
        self.said: list[str] = []
        self.standing = RegistryStatus.ALIVE
        self.error: Exception | None = None

    def register(self) -> str:
        self.said.append("register")
        return f"id-{self.said.count('register')}"

    def beat(self, worker_id: str) -> RegistryStatus:
        self.said.append(f"beat {worker_id}")
        if self.error is not None:
            raise self.error
        return self.standing

    def leave(self, worker_id: str) -> None:
        self.said.append(f"leave {worker_id}")


def test_a_worker_registers_beats_and_leaves():
    registry, beats, ids, _ = _beats()

    assert beats.tick(0) == 1_000
    assert beats.tick(999) == 1_000
    beats.tick(1_000)
    beats.leave()

    assert registry.said == ["register", "beat id-1", "leave id-1"]
    assert ids == ["id-1"]


def test_a_worker_that_was_declared_lost_registers_again():
    registry, beats, ids, _ = _beats()
    beats.tick(0)

    registry.standing = RegistryStatus.UNKNOWN
    beats.tick(1_000)

    assert ids == ["id-1", "id-2"]


def test_a_beat_reports_that_the_worker_should_drain():
    registry, beats, _, drains = _beats()
    beats.tick(0)

    registry.standing = RegistryStatus.DRAINING
    beats.tick(1_000)

    assert drains == [True]


def test_a_registry_out_of_reach_stops_nothing():
    registry, beats, ids, _ = _beats()
    beats.tick(0)

    registry.error = StoreUnavailable("gone")
    assert beats.tick(1_000) == 2_000
    registry.error = None
    beats.tick(2_000)

    assert ids == ["id-1"]


def _beats() -> tuple[FakeRegistry, Beats, list[str], list[bool]]:
    registry, ids, drains = FakeRegistry(), [], []  # type: ignore[var-annotated]
    beats = Beats(
        registry,
        every_ms=1_000,
        on_id=ids.append,
        on_drain=lambda: drains.append(True),
        outage=OutageReporter(),
    )
    return registry, beats, ids, drains


def _entry(receipt: str, state: EntryState) -> TableEntry:
    return TableEntry(state, 1_000, 0, receipt, "an-id", "mail")


def test_jobs_that_are_acquitted_have_not_crashed():
    table = JobTable.create(3)
    for place in range(3):
        table.note(place, receipt=str(place), id="", kind="")
        table.begin(place, now=1, deadline=None, is_sandboxed=False)

    table.clear_all_but([1])

    acts = acts_for(table.entries(), ProcessExit(LOOP_FAILED, 0), now=2, worker_id="w")
    assert [act.verb for act in acts] == [Verb.RELEASE, Verb.CRASH, Verb.RELEASE]
    assert "its event loop failed" in (acts[1].text or "")
    assert "beside" not in (acts[1].text or "")
    table.close()
