"""What every store can do about circuits, the duties of a cluster, and documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from penstock.domain.circuit.circuit import Circuit, CircuitState, Held, Outcome
from penstock.domain.circuit.outcome_window import Batch, Lines
from penstock.domain.document import Document, Latest


class Circuits(Protocol):
    """By their hashes.  What changes them asks for them `to_change` first."""

    def find(self, hashes: Sequence[str]) -> dict[str, Circuit]:
        """Those of them that are known."""
        ...

    def all(self) -> dict[str, Circuit]: ...
    def to_change(self, hashes: Iterable[str]) -> dict[str, Circuit]:
        """Those of them that are known; until the end of this transaction nobody else does."""
        ...

    def to_change_in(self, states: Sequence[CircuitState]) -> dict[str, Circuit]:
        """All of these states, likewise."""
        ...

    def to_note(self, patterns: Mapping[str, str]) -> dict[str, Circuit]:
        """By hash; those that are not known yet are added as closed ones."""
        ...

    def save(self, changed: Mapping[str, Circuit]) -> None:
        """They were asked for to be changed."""
        ...

    def lines(self, batches: Mapping[str, Batch], *, since: int, most: int) -> dict[str, Lines]:
        """As much of their samples as noting these batches can touch."""
        ...

    def keep_lines(self, lines: Mapping[str, Lines]) -> None:
        """What noting has changed about them."""
        ...

    def hold(self, circuit_hash: str, queue_nos: Sequence[int], *, now: int) -> None:
        """Remember that these queues are held, or are so anew."""
        ...

    def held(self, circuit_hash: str) -> list[Held]:
        """Longest first."""
        ...

    def held_names(self, circuit_hash: str, *, limit: int) -> list[str]:
        """Names of the queues that it holds, also of those that wait to be unheld."""
        ...

    def held_counts(self) -> dict[str, int]:
        """How many queues are held, by circuit; a removed circuit is named, too."""
        ...

    def awaiting_counts(self) -> dict[str, int]:
        """How many of them wait in the line, by circuit."""
        ...

    def held_page(
        self, circuit_hash: str | None, *, after: int, limit: int
    ) -> list[tuple[int, str]]:
        """Held queues by number, each with its circuit; None: those of every circuit."""
        ...

    def holding(self) -> list[str]:
        """Circuits that have queues to unhold."""
        ...

    def holders(self, queue_nos: Sequence[int]) -> list[str]:
        """Circuits that have any of these queues."""
        ...

    def drop_holds(self, hashes: Sequence[str], queue_nos: Sequence[int]) -> None:
        """Forget these queues, in the line too; the circuits were asked for to be changed."""
        ...

    def rotate(self, hashes: Sequence[str], *, now: int) -> list[int]:
        """Of each the queue that is held longest, if there is one; it goes to the back."""
        ...

    def line_up(self, hashes: Sequence[str]) -> None:
        """Their queues go to the end of the line."""
        ...

    def let_go(self, hashes: Sequence[str]) -> None:
        """The same, and their samples are forgotten."""
        ...

    def remove(self, hashes: Sequence[str]) -> None:
        """After they were let go."""
        ...

    def take_from_line(self, limit: int) -> list[int]:
        """The queues that are to be let go next, not to be asked for again."""
        ...

    def line(self, limit: int) -> list[int]:
        """The same, only to be looked at."""
        ...

    def samples(self, circuit_hash: str, outcome: Outcome) -> dict[str, int]:
        """All of them: instants by request."""
        ...


class Duties(Protocol):
    """What is done once per cluster and interval, whoever comes first."""

    def take(self, name: str, *, for_ms: int, now: int, holder: str = "") -> int | None:
        """None: somebody has it for the present.  Otherwise the how-many-th time in a row."""
        ...

    def until(self, name: str) -> int | None:
        """When it can be taken again."""
        ...

    def restart(self, name: str) -> None:
        """The next time is the first in a row."""
        ...

    def lead(self, name: str, *, holder: str, for_ms: int, now: int) -> bool:
        """Keep it, or take it if nobody has it: true while it is this holder's alone."""
        ...

    def leave(self, name: str, *, holder: str) -> None:
        """Whoever asks next may have it."""
        ...


class Documents(Protocol):
    def find(self, name: str) -> Document | None: ...
    def latest(self, name: str) -> Latest:
        """The same for those who remember a version, also of one that was removed."""
        ...

    def to_change(self, name: str, *, now: int) -> Document | None:
        """The same; until the end of this transaction nobody else changes it, or makes it."""
        ...

    def put(self, name: str, text: str, *, now: int) -> Document: ...
    def remove(self, name: str, *, now: int) -> int:
        """Its version from now on; 0: it was not there."""
        ...
