"""A pending answer: await it on an event loop, or block on `result()` in a thread; and wake-ups."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from penstock.domain.message.draft import NewMessage

InviteClaims = Callable[[asyncio.AbstractEventLoop, Iterable[Sequence[NewMessage]]], bool]

A = TypeVar("A")
B = TypeVar("B")
T_co = TypeVar("T_co", covariant=True)


class Ticket(Protocol[T_co]):
    def result(self, timeout: float | None = None) -> T_co: ...

    def then(self, callback: Callable[[Any], None]) -> None:
        """On an event loop: call back with the answer, or with the error in its place."""
        ...

    def __await__(self) -> Generator[Any, None, T_co]: ...


class DependentTicket(Generic[A, B]):
    """Work that needs the answer of other work first.  Like a ticket, it is used once."""

    __slots__ = ("_first", "_following")

    def __init__(self, first: Ticket[A], following: Callable[[A], Ticket[B]]) -> None:
        self._first = first
        self._following = following

    def result(self, timeout: float | None = None) -> B:
        return self._following(self._first.result(timeout)).result(timeout)

    def then(self, callback: Callable[[Any], None]) -> None:
        def on_first(answer: Any) -> None:
            if not isinstance(answer, BaseException):
                try:
                    following = self._following(answer)
                except Exception as error:
                    answer = error
                else:
                    following.then(callback)
                    return
            callback(answer)

        self._first.then(on_first)

    def __await__(self) -> Generator[Any, None, B]:
        first = yield from self._first.__await__()
        return (yield from self._following(first).__await__())


class Wakeups(Protocol):
    """Hints that a queue may have something to claim.  A lost one only costs time."""

    def listen(self, callback: Callable[[Mapping[int, int]], None]) -> None:
        """Call back with {queue_no: how many became ready} after commits, from any thread."""
        ...

    def invite_claims(self, invite: InviteClaims) -> None:
        """Call `invite` before a commit that sends, on the event loop of the senders.

        It returns whether claims will be submitted in the next iteration of the loop: the commit
        waits for them, and they get what is just being sent.
        """
        ...


class Endings(Protocol):
    """Hints that messages have ended.  A lost one only costs time."""

    def listen_for_endings(self, callback: Callable[[Sequence[str]], None]) -> None:
        """Call back with ids of messages that ended, from any thread.

        Those that other processes have completed without a result are not included, nor are those
        of this process unless `watch_endings` is on.
        """
        ...

    def watch_endings(self, is_on: bool) -> None:
        """Include all messages that end in this process, from the next transaction on."""
        ...
