"""Parts of a node report their health here, and /healthz reads it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from penstock.domain.node_part import PartProgress, PartTrouble, is_stuck, observe

_log = logging.getLogger("penstock.health")


class NodePart:
    """A thread or task as it reports itself; read from any thread."""

    def __init__(
        self,
        name: str,
        *,
        stuck_ms: int | None = None,
        has_work: Callable[[], bool] | None = None,
    ) -> None:
        """`stuck_ms`: how long it may finish nothing while it `has_work`; None: no limit."""
        self.name = name
        self.moves = 0  # steps of work, counted by the part itself
        self.error: str | None = None  # why it is not running, if so
        self._stuck_ms = stuck_ms
        self._has_work = has_work
        self._progress: PartProgress | None = None
        self._is_stuck = False

    def look(self, now: int) -> None:
        if self._stuck_ms is None or self._has_work is None:
            return
        self._progress = observe(
            self._progress, moves=self.moves, has_work=self._has_work(), now=now
        )
        was_stuck = self._is_stuck
        self._is_stuck = is_stuck(self._progress, stuck_ms=self._stuck_ms, now=now)
        if self._is_stuck and not was_stuck:
            _log.error("%s is stuck: %s", self.name, self._text())
        elif was_stuck and not self._is_stuck:
            _log.warning("%s is working again", self.name)

    @property
    def trouble(self) -> PartTrouble | None:
        error = self.error
        if error is not None:
            return PartTrouble(self.name, "failed", error)
        return PartTrouble(self.name, "stuck", self._text()) if self._is_stuck else None

    def _text(self) -> str:
        return f"no work finished for {(self._stuck_ms or 0) / 1000:g} s while some was waiting"


class NodeHealth:
    """The parts of one node."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: list[NodePart] = []

    def add(self, part: NodePart) -> NodePart:
        with self._lock:
            self._parts.append(part)
        return part

    def remove(self, part: NodePart) -> None:
        with self._lock:
            if part in self._parts:
                self._parts.remove(part)

    def look(self, now: int) -> None:
        """Observe every part; call it about once a second, with a monotonic clock."""
        for part in self._all():
            part.look(now)

    def troubles(self) -> list[PartTrouble]:
        """Empty while every part runs.  Never waits for a part."""
        found = (part.trouble for part in self._all())
        return [trouble for trouble in found if trouble is not None]

    def _all(self) -> list[NodePart]:
        with self._lock:
            return list(dict.fromkeys(self._parts))  # several threads may be one part
