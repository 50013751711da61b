"""Logs of attempts: kept by the worker that holds the lease, read with the message."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.domain.errors import InvalidRequest, LeaseLost, PenstockError, TooLarge
from penstock.domain.limits import Limits
from penstock.domain.message.attempt_log import LogLine, LogPart, encode_lines, lines_of
from penstock.domain.message.lease import Lease, is_leased_to
from penstock.domain.text import sanitize
from penstock.ports.clock import Clock
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import Work, read, write
from penstock.services.message_views import view_of_id

MAX_SEQ = 1_000_000


class LogWrite(msgspec.Struct, frozen=True):
    lease: Lease
    seq: int
    lines: list[LogLine]


class LogPage(msgspec.Struct, frozen=True):
    queue: str
    lines: list[tuple[int, LogLine]]  # the number of the lease, and what was logged
    after: tuple[int, int]  # the place of the last part


class AttemptLogService:
    def __init__(self, store: Store, clock: Clock, limits: Limits) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits

    def keep(self, writes: Sequence[LogWrite]) -> Work[list[PenstockError | None]]:
        """Each is kept or has an error of its own; a lost lease changes nothing."""
        now, most = self._clock.now(), self._limits.max_log_bytes

        def do(session: Session) -> list[PenstockError | None]:
            nos = [each.lease.message_no for each in writes]
            found = {m.message_no: m for m in session.messages.by_numbers(nos)}
            answers: list[PenstockError | None] = []
            for each in writes:
                message = found.get(each.lease.message_no)
                if message is None or not is_leased_to(each.lease, message):
                    answers.append(LeaseLost())
                elif not 1 <= each.seq <= MAX_SEQ:
                    answers.append(InvalidRequest(f"seq must be from 1 to {MAX_SEQ}"))
                elif not session.attempt_logs.add(_part(each), now=now, most=most):
                    answers.append(TooLarge(f"the log of an attempt has at most {most} bytes"))
                else:
                    answers.append(None)
            return answers

        return write(self._store, do)

    def page(self, message_id: str, *, after: tuple[int, int], limit: int) -> Work[LogPage]:
        """Raises MessageNotFound."""

        def do(session: Session) -> LogPage:
            view = view_of_id(session, message_id)
            parts = session.attempt_logs.of_message(
                view.message.message_no, after=after, limit=limit
            )
            lines = [(part.lease_no, line) for part in parts for line in lines_of(part)]
            last = (parts[-1].lease_no, parts[-1].seq) if parts else after
            return LogPage(view.queue, lines, last)

        return read(self._store, do)


def _part(each: LogWrite) -> LogPart:
    lines = [
        LogLine(line.at, sanitize(line.level), sanitize(line.source), sanitize(line.text))
        for line in each.lines
    ]
    return LogPart(
        message_no=each.lease.message_no,
        lease_no=each.lease.lease_no,
        seq=each.seq,
        lines=encode_lines(lines),
    )
