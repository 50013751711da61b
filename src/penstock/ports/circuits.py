"""Protocols of a store: circuits, cluster duties and documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from penstock.domain.circuit.circuit import Circuit, CircuitState, HeldQueue, RequestOutcome
from penstock.domain.circuit.outcome_window import Batch, OutcomeWindows
from penstock.domain.document import Document, Latest


class CircuitStore(Protocol):
    """By hash.  Lock circuits with `to_change` before changing them."""

    def find(self, hashes: Sequence[str]) -> dict[str, Circuit]:
        """Those that exist."""
        ...

    def all(self) -> dict[str, Circuit]: ...
    def to_change(self, hashes: Iterable[str]) -> dict[str, Circuit]:
        """Those that exist, locked until the end of this transaction."""
        ...

    def to_change_in(self, states: Sequence[CircuitState]) -> dict[str, Circuit]:
        """All circuits in these states, likewise."""
        ...

    def to_note(self, patterns: Mapping[str, str]) -> dict[str, Circuit]:
        """By hash; unknown ones are added as closed."""
        ...

    def save(self, changed: Mapping[str, Circuit]) -> None:
        """Save circuits that were locked for change."""
        ...

    def windows(
        self, batches: Mapping[str, Batch], *, since: int, most: int
    ) -> dict[str, OutcomeWindows]:
        """The windows, as far as recording these batches can touch them."""
        ...

    def save_windows(self, lines: Mapping[str, OutcomeWindows]) -> None:
        """Save what recording has changed."""
        ...

    def hold(self, circuit_hash: str, queue_nos: Sequence[int], *, now: int) -> None:
        """Record that these queues are held, or held again."""
        ...

    def held(self, circuit_hash: str) -> list[HeldQueue]:
        """Longest first."""
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
        """Forget these queues, also those waiting for release; the circuits are locked."""
        ...

    def rotate(self, hashes: Sequence[str], *, now: int) -> list[int]:
        """Of each circuit the queue that was held longest, if any; it is put last."""
        ...

    def line_up(self, hashes: Sequence[str]) -> None:
        """Put their queues last among those to be released."""
        ...

    def line_up_and_forget(self, hashes: Sequence[str]) -> None:
        """The same, and forget their outcomes."""
        ...

    def remove(self, hashes: Sequence[str]) -> None:
        """Remove them after their queues were lined up."""
        ...

    def take_for_release(self, limit: int) -> list[int]:
        """Remove and return the queues to be released next."""
        ...

    def next_for_release(self, limit: int) -> list[int]:
        """The same, without removing them."""
        ...

    def outcomes(self, circuit_hash: str, outcome: RequestOutcome) -> dict[str, int]:
        """Instants by request, all of them."""
        ...


class DutyStore(Protocol):
    """Work done once per cluster and interval, by whichever node comes first."""

    def take(self, name: str, *, for_ms: int, now: int, holder: str = "") -> int | None:
        """None: another node has it.  Otherwise the number of times in a row, this one included."""
        ...

    def until(self, name: str) -> int | None:
        """When it can be taken again."""
        ...

    def restart(self, name: str) -> None:
        """Make the next time count as the first in a row."""
        ...

    def lead(self, name: str, *, holder: str, for_ms: int, now: int) -> bool:
        """Keep or take it; True while this holder alone has it."""
        ...

    def leave(self, name: str, *, holder: str) -> None:
        """Give it up for the next one that asks."""
        ...


class DocumentStore(Protocol):
    def find(self, name: str) -> Document | None: ...
    def latest(self, name: str) -> Latest:
        """The same for callers that remember a version, also of a removed document."""
        ...

    def to_change(self, name: str, *, now: int) -> Document | None:
        """The same, locked until the end of this transaction, whether it exists or not."""
        ...

    def put(self, name: str, text: str, *, now: int) -> Document: ...
    def remove(self, name: str, *, now: int) -> int:
        """Its new version; 0: it did not exist."""
        ...
