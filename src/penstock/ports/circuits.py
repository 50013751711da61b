"""Protocols of a store: circuits, deliveries, cluster duties and documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from penstock.domain.circuit.circuit import Circuit, CircuitState, HeldQueue, RequestOutcome
from penstock.domain.circuit.outcome_window import Batch, OutcomeWindows
from penstock.domain.document import Document, Latest


class CircuitStore(Protocol):
    """Circuits by hash.  Lock them with `lock` before changing them."""

    def find(self, hashes: Sequence[str]) -> dict[str, Circuit]:
        """The circuits that exist."""
        ...

    def all(self) -> dict[str, Circuit]: ...
    def lock(self, hashes: Iterable[str]) -> dict[str, Circuit]:
        """The circuits that exist, locked until the end of this transaction."""
        ...

    def lock_in(self, states: Sequence[CircuitState]) -> dict[str, Circuit]:
        """All circuits in these states, likewise."""
        ...

    def lock_or_add(self, patterns: Mapping[str, str]) -> dict[str, Circuit]:
        """The same, by hash; unknown circuits are added as closed."""
        ...

    def save(self, changed: Mapping[str, Circuit]) -> None:
        """Save circuits that were locked for change."""
        ...

    def windows(
        self, batches: Mapping[str, Batch], *, since: int, most: int
    ) -> dict[str, OutcomeWindows]:
        """The parts of the windows that recording these batches can change."""
        ...

    def save_windows(self, windows: Mapping[str, OutcomeWindows]) -> None:
        """Save windows after outcomes were recorded."""
        ...

    def hold(self, circuit_hash: str, queue_nos: Sequence[int], *, now: int) -> None:
        """Record that these queues are held, or held again."""
        ...

    def held(self, circuit_hash: str) -> list[HeldQueue]:
        """Its held queues, the longest held first."""
        ...

    def held_names(self, circuit_hash: str, *, limit: int) -> list[str]:
        """Names of the queues that it holds, including those waiting to be unheld."""
        ...

    def held_counts(self) -> dict[str, int]:
        """The number of held queues by circuit, including removed circuits."""
        ...

    def awaiting_counts(self) -> dict[str, int]:
        """How many of them wait to be unheld, by circuit."""
        ...

    def held_page(
        self, circuit_hash: str | None, *, after: int, limit: int
    ) -> list[tuple[int, str]]:
        """Held queues by number, each with its circuit; None: of every circuit."""
        ...

    def holding(self) -> list[str]:
        """Circuits that have queues to unhold."""
        ...

    def holders(self, queue_nos: Sequence[int]) -> list[str]:
        """Circuits that hold any of these queues."""
        ...

    def drop_holds(self, hashes: Sequence[str], queue_nos: Sequence[int]) -> None:
        """Forget these queues, including those waiting for release; the circuits are locked."""
        ...

    def rotate(self, hashes: Sequence[str], *, now: int) -> list[int]:
        """The longest held queue of each circuit, if any; it moves to the end."""
        ...

    def queue_for_release(self, hashes: Sequence[str]) -> None:
        """Append their queues to those waiting for release."""
        ...

    def queue_for_release_and_forget(self, hashes: Sequence[str]) -> None:
        """The same, and forget their outcomes."""
        ...

    def remove(self, hashes: Sequence[str]) -> None:
        """Remove circuits whose queues wait for release."""
        ...

    def take_for_release(self, limit: int) -> list[int]:
        """Remove and return the queues to be released next."""
        ...

    def next_for_release(self, limit: int) -> list[int]:
        """The same, without removing them."""
        ...

    def outcomes(self, circuit_hash: str, outcome: RequestOutcome) -> dict[str, int]:
        """The instants of all stored outcomes, by request."""
        ...


class DutyStore(Protocol):
    """Work done once per cluster and interval, by the node that comes first."""

    def take(self, name: str, *, for_ms: int, now: int, holder: str = "") -> int | None:
        """Take a duty; returns how often it was taken in a row; None: another node has it."""
        ...

    def until(self, name: str) -> int | None:
        """When it can be taken again."""
        ...

    def restart(self, name: str) -> None:
        """Count the next time as the first in a row."""
        ...

    def lead(self, name: str, *, holder: str, for_ms: int, now: int) -> bool:
        """Take or keep the lead; True while this holder has it."""
        ...

    def leave(self, name: str, *, holder: str) -> None:
        """Give up the lead, so that another holder can take it at once."""
        ...


class DocumentStore(Protocol):
    def find(self, name: str) -> Document | None: ...
    def latest(self, name: str) -> Latest:
        """The same, with the version of a removed document, for callers that cache it."""
        ...

    def lock(self, name: str, *, now: int) -> Document | None:
        """The same, locked until the end of this transaction, whether it exists or not."""
        ...

    def put(self, name: str, text: str, *, now: int) -> Document: ...
    def remove(self, name: str, *, now: int) -> int:
        """Remove it; returns its new version; 0: it did not exist."""
        ...


class DeliveryStore(Protocol):
    """Queues and messages, for the pusher."""

    def queues_with_ready(self) -> list[int]:
        """Numbers of all queues with ready messages that are neither paused nor held."""
        ...

    def end_backoff(self, queue_nos: Sequence[int], *, now: int) -> list[int]:
        """Make first messages that wait after a failure due now; returns the queues with one."""
        ...
