"""Logs of attempts, in the tables of the day on which they were written."""

from __future__ import annotations

from penstock.domain.limits import DAY
from penstock.domain.message.attempt_log import LogPart
from penstock.store.entities.entity import SqlEntity


class SqlAttemptLogs(SqlEntity):
    def add(self, part: LogPart, *, now: int, most: int) -> bool:
        """The size counts per day: few attempts last longer."""
        day = self._transaction.partitions.ensure(now // DAY)
        place = {"message_no": part.message_no, "lease_no": part.lease_no, "seq": part.seq}
        [(size,)] = self._db.rows("attempt_logs.size", place, day=day)
        if size + len(part.lines) > most:
            return False
        self._db.run("attempt_logs.add", {**place, "lines": part.lines}, day=day)
        return True

    def of_message(self, no: int, *, after: tuple[int, int], limit: int) -> list[LogPart]:
        params = {
            "message_no": no,
            "after_lease_no": after[0],
            "after_seq": after[1],
            "limit": limit,
        }
        days = self._transaction.partitions.days()
        asked = [self._db.ask("attempt_logs.of_message", params, day=day) for day in days]
        rows = sorted(row for answer in asked for row in answer.rows())[:limit]
        return [
            LogPart(message_no=no, lease_no=lease_no, seq=seq, lines=lines)
            for lease_no, seq, lines in rows
        ]
