"""Stand-ins for the outside world, and for nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from penstock.domain.scaling.pressure import Pressure
from penstock.domain.scaling.recommendation import Replicas, Sample
from penstock.ports.sender import PushRequest, PushResponse

T = TypeVar("T")


class FakeSender:
    """Records requests until the test sets their answers."""

    def __init__(self) -> None:
        self.open: list[tuple[PushRequest, Callable[[PushResponse], None]]] = []
        self.sent: list[PushRequest] = []

    def send(self, request: PushRequest, then: Callable[[PushResponse], None]) -> None:
        self.sent.append(request)
        self.open.append((request, then))

    def answer(self, status: int | None = 200, **response: object) -> list[PushRequest]:
        """All that wait for an answer get this one."""
        answered, self.open = self.open, []
        for _, then in answered:
            then(PushResponse(status=status, **response))  # type: ignore[arg-type]
        return [request for request, _ in answered]

    def answer_one(self, status: int, *, host: str) -> None:
        """The first that waits for an answer of this host gets one."""
        wanted = next(one for one in self.open if one[0].url.startswith(f"http://{host}/"))
        self.open.remove(wanted)
        wanted[1](PushResponse(status=status))

    def close(self) -> None:
        self.answer(None, error="broken off", is_broken_off=True)


class FakeLoad:
    """A load source that returns or raises what the test has set."""

    def __init__(self, ready: int = 0, **more: Any) -> None:
        self.sample: Sample | Exception = Sample(ready=ready, **more)
        self.found: Pressure | Exception | None = None
        self.by_queue: dict[str, Sample | Exception] = {}  # in place of the sample
        self.reads = 0
        self.is_closed = False

    def read(self, queue: str, staging_indicator: str | None, *, now: int) -> Sample:
        self.reads += 1
        return _said(self.by_queue.get(queue, self.sample))

    def pressure(self, *, now: int) -> Pressure | None:
        return _said(self.found)

    def close(self) -> None:
        self.is_closed = True


class FakeReplicas:
    """Runs workers at once, or as the test has set; `said` overrides the reported count."""

    def __init__(self, running: int = 0) -> None:
        self.running = running
        self.said: Replicas | Exception | None = None
        self.error: Exception | None = None  # of scaling
        self.failing: Exception | None = None  # of tending
        self.asked: list[int] = []
        self.tended = 0
        self.is_closed = False

    def count(self, *, now: int) -> Replicas:
        return _said(self.said) or Replicas(running=self.running, requested=self.running)

    def scale_to(self, wanted: int, *, now: int) -> None:
        self.asked.append(wanted)
        if self.error is not None:
            raise self.error
        self.running = wanted

    def maintain(self, *, now: int) -> None:
        self.tended += 1
        if self.failing is not None:
            raise self.failing

    def close(self) -> None:
        self.is_closed = True


def _said(what: T | Exception) -> T:
    if isinstance(what, Exception):
        raise what
    return what
