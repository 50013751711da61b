"""A batch of outcomes has the same effect as the same outcomes one by one."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.domain.circuit import circuit as circuits
from penstock.domain.circuit.circuit import Circuit, CircuitState, RequestOutcome
from penstock.domain.circuit.outcome_window import (
    MAX_ID_BYTES,
    Batch,
    OutcomeWindow,
    OutcomeWindows,
    max_removable,
    note_all,
    stored_request_id,
)
from penstock.domain.circuit.settings import BreakerSettings
from tests.domain.circuit import oracle
from tests.domain.circuit.oracle import CircuitOutcomes

NOW = 1_000_000
FAILURE, SUCCESS = RequestOutcome.FAILURE, RequestOutcome.SUCCESS


def one_by_one(
    circuit: Circuit, samples: CircuitOutcomes, batch: Batch, settings: BreakerSettings
) -> tuple[Circuit, CircuitOutcomes, int | None]:
    opened_by = None
    for i, (request_id, outcome) in enumerate(batch):
        samples = oracle.note(samples, request_id, outcome, now=NOW)
        before = circuit.state
        circuit = circuits.judge(
            circuit, oracle.tally(samples, settings, now=NOW), settings, now=NOW
        )
        if circuit.state is not before:
            opened_by = i
        samples = oracle.trim(samples, settings)
    return circuit, samples, opened_by


def line_of(entries: dict[str, int], names: set[str], settings: BreakerSettings) -> OutcomeWindow:
    """What a store would read of them, and no more."""
    since = NOW - settings.entries_max_age_ms
    most = settings.max_queue_sample_count
    ordered = sorted(entries.items(), key=lambda entry: (entry[1], entry[0]))
    known = dict(ordered[: max_removable(len(entries), len(names), most)])
    known |= {name: at for name, at in entries.items() if name in names}
    old = sum(at < since for at in entries.values())
    return OutcomeWindow(len(entries), old, known, since=since)


def kept(entries: dict[str, int], line: OutcomeWindow) -> dict[str, int]:
    left = {name: at for name, at in entries.items() if name not in line.removed}
    return left | line.noted


ids = st.sampled_from("abcdefgh")
entries = st.dictionaries(ids, st.integers(NOW - 20, NOW), max_size=8)
some_settings = st.builds(
    BreakerSettings,
    error_threshold_percentage=st.integers(0, 100),
    entries_max_age_ms=st.integers(0, 20),
    min_queue_sample_count=st.integers(0, 10),
    max_queue_sample_count=st.integers(0, 8),
)


@settings(max_examples=500)
@given(
    success=entries,
    failure=entries,
    batch=st.lists(st.tuples(ids, st.sampled_from(RequestOutcome)), max_size=12),
    chosen=some_settings,
    state=st.sampled_from(CircuitState),
)
def test_a_batch_has_the_same_result_as_single_outcomes(
    success: Any, failure: Any, batch: Any, chosen: BreakerSettings, state: CircuitState
) -> None:
    circuit = Circuit(pattern="/x", state=state)
    names = {kind: {name for name, outcome in batch if outcome is kind} for kind in RequestOutcome}
    windows = OutcomeWindows(
        line_of(success, names[SUCCESS], chosen), line_of(failure, names[FAILURE], chosen)
    )

    after, opened_by = note_all(circuit, windows, batch, chosen, now=NOW)

    wanted, samples, wanted_by = one_by_one(
        circuit, CircuitOutcomes(success, failure), batch, chosen
    )
    assert (after, opened_by) == (wanted, wanted_by)
    if batch:
        assert kept(success, windows.success) == samples.success
        assert kept(failure, windows.failure) == samples.failure
        assert windows.success.size == len(samples.success)
        assert windows.failure.size == len(samples.failure)


def test_it_opens_in_the_middle_although_the_end_looks_good() -> None:
    settings = BreakerSettings(error_threshold_percentage=60, min_queue_sample_count=3)
    batch = [(f"f{i}", FAILURE) for i in range(3)] + [(f"s{i}", SUCCESS) for i in range(9)]
    windows = OutcomeWindows(OutcomeWindow(0, 0, {}, since=0), OutcomeWindow(0, 0, {}, since=0))

    after, opened_by = note_all(Circuit(pattern="/x"), windows, batch, settings, now=NOW)

    assert (after.state, opened_by, after.fail_ratio) == (CircuitState.OPEN, 2, 25)


def test_ids_are_kept_short_and_apart() -> None:
    long, other = "/a" * 5_000, "/a" * 5_000 + "b"

    assert stored_request_id("/short?x=1") == "/short?x=1"
    assert stored_request_id(long) != stored_request_id(other)
    assert len(stored_request_id("ü" * 500).encode()) <= MAX_ID_BYTES
    assert stored_request_id("a\0b\ud800") == "ab?"
