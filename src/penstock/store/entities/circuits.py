"""Circuits: their states, their outcomes, the queues they hold, and the queues to be released.

A transaction that changes circuits locks their rows first, in the order of their hashes, and queues
afterwards, which prevents deadlocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from penstock.domain.circuit.circuit import Circuit, CircuitState, HeldQueue, RequestOutcome
from penstock.domain.circuit.outcome_window import (
    Batch,
    OutcomeWindow,
    OutcomeWindows,
    max_removable,
)
from penstock.store.database import QueryResult, Row
from penstock.store.entities.entity import SqlEntity, params_of, reader
from penstock.store.verbs.transaction_state import TransactionState, json_list

_OUTCOMES = (RequestOutcome.SUCCESS, RequestOutcome.FAILURE)  # by the number that is stored
_SAVED = Circuit.__struct_fields__[1:]  # without its pattern
_circuit_of = reader(Circuit)
_Key = tuple[int, int]  # number of the circuit, number of the outcome


class CircuitRow(msgspec.Struct):
    """The columns besides the circuit itself: its number, and the numbers of its outcomes."""

    no: int
    sizes: list[int]


class SqlCircuits(SqlEntity):
    def __init__(self, transaction: TransactionState) -> None:
        super().__init__(transaction)
        self._rows: dict[str, CircuitRow] = {}  # by hash, as last read

    def find(self, hashes: Sequence[str]) -> dict[str, Circuit]:
        return self._select("by_hashes", {"hashes": json_list(hashes)}) if hashes else {}

    def all(self) -> dict[str, Circuit]:
        return self._select("everything", {})

    def lock(self, hashes: Iterable[str]) -> dict[str, Circuit]:
        wanted = sorted(set(hashes))
        return self._select("lock", {"hashes": json_list(wanted)}) if wanted else {}

    def lock_in(self, states: Sequence[CircuitState]) -> dict[str, Circuit]:
        return self._select("lock_in", {"states": json_list(states)})

    def lock_or_add(self, patterns: Mapping[str, str]) -> dict[str, Circuit]:
        found = self.lock(patterns)
        new = sorted(patterns.keys() - found.keys())
        if new:
            closed = CircuitState.CLOSED.value
            self._db.insert("circuits.add", [(one, patterns[one], closed) for one in new])
            found = self.lock(patterns)
        return found

    def save(self, changed: Mapping[str, Circuit]) -> None:
        rows = [self._row(one, changed[one]) for one in sorted(changed)]
        self._db.update("circuits.save", rows)

    def windows(
        self, batches: Mapping[str, Batch], *, since: int, most: int
    ) -> dict[str, OutcomeWindows]:
        wanted = {
            (self._rows[one].no, number): {name for name, outcome in batch if outcome is kind}
            for one, batch in batches.items()
            for number, kind in enumerate(_OUTCOMES)
        }
        nos = json_list(sorted({no for no, _ in wanted}))
        old_ones = self._db.ask("circuits.old_samples", {"circuit_nos": nos, "since": since})
        asked = {key: self._ask_known(key, names) for key, names in wanted.items() if names}
        oldest = {
            key: self._ask_oldest(key, max_removable(self._size(one, key), len(wanted[key]), most))
            for one in batches
            for key in self._keys(one)
        }
        old = {(no, number): count for no, number, count in old_ones.rows()}
        found = {}
        for one in batches:
            pair = []
            for key in self._keys(one):
                answers = [a for a in (asked.get(key), oldest[key]) if a is not None]
                known = {name: at for answer in answers for name, at in answer.rows()}
                pair.append(
                    OutcomeWindow(self._size(one, key), old.get(key, 0), known, since=since)
                )
            found[one] = OutcomeWindows(*pair)
        return found

    def save_windows(self, windows: Mapping[str, OutcomeWindows]) -> None:
        noted: list[Row] = []
        for one, pair in sorted(windows.items()):
            row = self._rows[one]
            for number, kind in enumerate(_OUTCOMES):
                window = pair.of(kind)
                row.sizes[number] = window.size
                noted += ((row.no, number, name, at) for name, at in window.noted.items())
                if window.removed:
                    self._db.post("circuits.trim", _key_params((row.no, number), window.removed))
        if noted:
            self._db.insert("circuits.note", noted)

    def hold(self, circuit_hash: str, queue_nos: Sequence[int], *, now: int) -> None:
        no = self._rows[circuit_hash].no
        if queue_nos:
            self._db.insert("circuits.hold", [(no, queue_no, now) for queue_no in set(queue_nos)])

    def held(self, circuit_hash: str) -> list[HeldQueue]:
        return [HeldQueue(*row) for row in self._db.rows("circuits.held", {"hash": circuit_hash})]

    def held_names(self, circuit_hash: str, *, limit: int) -> list[str]:
        params = {"hash": circuit_hash, "limit": limit}
        return [name for (name,) in self._db.rows("circuits.held_names", params)]

    def held_counts(self) -> dict[str, int]:
        return {one: int(count) for one, count in self._db.rows("circuits.held_counts")}

    def awaiting_counts(self) -> dict[str, int]:
        return {one: int(count) for one, count in self._db.rows("circuits.awaiting_counts")}

    def held_page(
        self, circuit_hash: str | None, *, after: int, limit: int
    ) -> list[tuple[int, str]]:
        params: dict[str, Any] = {"after": after, "limit": limit}
        if circuit_hash is None:
            rows = self._db.rows("circuits.held_page", params)
        else:
            rows = self._db.rows("circuits.held_page_of", params | {"hash": circuit_hash})
        return [(queue_no, held_by) for queue_no, held_by in rows]

    def holding(self) -> list[str]:
        return [one for (one,) in self._db.rows("circuits.holding")]

    def holders(self, queue_nos: Sequence[int]) -> list[str]:
        if not queue_nos:
            return []
        rows = self._db.rows("circuits.holders", {"queue_nos": json_list(queue_nos)})
        return [one for (one,) in rows]

    def drop_holds(self, hashes: Sequence[str], queue_nos: Sequence[int]) -> None:
        if not queue_nos:
            return
        nos = json_list(queue_nos)
        if hashes:
            params = {"circuit_nos": self._nos(hashes), "queue_nos": nos}
            self._db.run("circuits.drop_holds", params)
        self._db.run("circuits.remove_from_release", {"queue_nos": nos})

    def rotate(self, hashes: Sequence[str], *, now: int) -> list[int]:
        if not hashes:
            return []
        rows = self._db.rows("circuits.held_longest", {"circuit_nos": self._nos(hashes)})
        if rows:
            self._db.insert("circuits.hold", [(*row, now) for row in rows])
        return [queue_no for _, queue_no in rows]

    def queue_for_release(self, hashes: Sequence[str]) -> None:
        if hashes:
            nos = {"circuit_nos": self._nos(hashes)}
            self._db.run("circuits.queue_for_release", nos)
            self._db.run("circuits.forget_holds", nos)

    def queue_for_release_and_forget(self, hashes: Sequence[str]) -> None:
        if not hashes:
            return
        self.queue_for_release(hashes)
        self._db.run("circuits.forget_samples", {"circuit_nos": self._nos(hashes)})
        for one in hashes:
            self._rows[one].sizes = [0, 0]

    def remove(self, hashes: Sequence[str]) -> None:
        if hashes:
            self._db.run("circuits.remove", {"circuit_nos": self._nos(hashes)})

    def take_for_release(self, limit: int) -> list[int]:
        rows = self._db.rows("circuits.take_for_release", {"limit": limit})
        return [queue_no for _, queue_no in sorted(rows)]

    def next_for_release(self, limit: int) -> list[int]:
        rows = self._db.rows("circuits.next_for_release", {"limit": limit})
        return [queue_no for _, queue_no in rows]

    def outcomes(self, circuit_hash: str, outcome: RequestOutcome) -> dict[str, int]:
        params = {"hash": circuit_hash, "is_failure": _OUTCOMES.index(outcome)}
        return dict(self._db.rows("circuits.samples", params))

    def _keys(self, one: str) -> list[_Key]:
        return [(self._rows[one].no, number) for number in range(len(_OUTCOMES))]

    def _size(self, one: str, key: _Key) -> int:
        return self._rows[one].sizes[key[1]]

    def _ask_known(self, key: _Key, names: set[str]) -> QueryResult:
        return self._db.ask("circuits.known_samples", _key_params(key, names))

    def _ask_oldest(self, key: _Key, limit: int) -> QueryResult | None:
        """Query the oldest outcomes, but only if the limit is reached."""
        params = {"circuit_no": key[0], "is_failure": key[1], "limit": limit}
        return self._db.ask("circuits.oldest_samples", params) if limit else None

    def _nos(self, hashes: Iterable[str]) -> str:
        return json_list(sorted({self._rows[one].no for one in hashes}))

    def _row(self, circuit_hash: str, circuit: Circuit) -> dict[str, Any]:
        row = self._rows[circuit_hash]
        successes, failures = row.sizes
        counts = {"circuit_no": row.no, "successes": successes, "failures": failures}
        return params_of(circuit, _SAVED) | counts

    def _select(self, which: str, params: dict[str, Any]) -> dict[str, Circuit]:
        conditions = self._db.text(f"circuits.{which}")
        rows = self._db.rows("circuits.find", params, conditions=conditions)
        self._rows |= {row[0]: CircuitRow(row[1], [row[2], row[3]]) for row in rows}
        return {row[0]: _circuit_of(row[4:]) for row in rows}


def _key_params(key: _Key, names: Iterable[str]) -> dict[str, Any]:
    no, number = key
    return {"circuit_no": no, "is_failure": number, "request_ids": json_list(sorted(names))}


class SqlDeliveries(SqlEntity):
    """Queries of the pusher."""

    def queues_with_ready(self) -> list[int]:
        return [no for (no,) in self._db.rows("deliveries.queues_with_ready")]

    def end_backoff(self, queue_nos: Sequence[int], *, now: int) -> list[int]:
        if not queue_nos:
            return []
        params = {"queue_nos": json_list(queue_nos), "now": now}
        lock = self._db.text("messages.skip_locked")
        rows = self._db.rows("deliveries.end_backoff", params, lock=lock)
        found = sorted({queue_no for (queue_no,) in rows})
        for queue_no in found:
            self._transaction.wake(queue_no)
        return found
