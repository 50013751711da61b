"""Keep and read the logs of attempts."""

from __future__ import annotations

from penstock.api.jobs import attempt_logs
from penstock.api.jobs.attempt_logs import (
    KeepLogs,
    KeptLogs,
    LogLine,
    LogPart,
    MessageLogs,
    ReadLogs,
)
from penstock.domain.access.api_key import Role, allow, is_limited
from penstock.domain.datetimes import parse_instant
from penstock.domain.errors import PenstockError
from penstock.domain.limits import Limits
from penstock.domain.message import attempt_log as domain
from penstock.operations.call import Call, Handlers
from penstock.operations.paging import check_batch, from_cursor, to_cursor
from penstock.ports.unit_of_work import Steps
from penstock.services.directory import Directory
from penstock.services.jobs.attempt_logs import AttemptLogService, LogWrite
from penstock.services.messages import MessageService

KEPT = "kept"


class AttemptLogOperations:
    def __init__(
        self,
        service: AttemptLogService,
        messages: MessageService,
        directory: Directory,
        limits: Limits,
    ) -> None:
        self._logs = service
        self._messages = messages
        self._directory = directory
        self._limits = limits

    def handlers(self) -> Handlers:
        return {attempt_logs.KEEP: self.keep, attempt_logs.READ: self.read}

    def keep(self, call: Call[KeepLogs, None]) -> Steps[KeptLogs]:
        check_batch(len(call.body.logs), self._limits)
        planned: list[LogWrite | PenstockError] = []
        for part in call.body.logs:
            planned.append((yield from self._plan(call, part)))
        writes = [plan for plan in planned if isinstance(plan, LogWrite)]
        answers = iter((yield from self._logs.keep(writes)) if writes else [])
        results = [plan if isinstance(plan, PenstockError) else next(answers) for plan in planned]
        return KeptLogs(results=[KEPT if one is None else one.code for one in results])

    def read(self, call: Call[None, ReadLogs]) -> Steps[MessageLogs]:
        place = from_cursor(call.query.cursor, 2) or (0, 0)
        after = (place[0], place[1])
        page = yield from self._logs.page(call.path["id"], after=after, limit=call.query.limit)
        allow(call.caller, Role.READ, page.queue)
        return MessageLogs(
            lines=[
                LogLine.copy_of(line, call.instant, lease_no=lease_no)
                for lease_no, line in page.lines
            ],
            next=to_cursor(*page.after),
        )

    def _plan(self, call: Call[KeepLogs, None], part: LogPart) -> Steps[LogWrite | PenstockError]:
        try:
            lease = self._messages.read_receipt(part.receipt)
            if is_limited(call.caller):
                name = self._directory.known_name(lease.queue_no)
                if name is None:
                    name = yield self._directory.name_of(lease.queue_no)
                allow(call.caller, Role.CONSUME, name)
            lines = [
                domain.LogLine(parse_instant("at", line.at), line.level, line.source, line.text)
                for line in part.lines
            ]
        except PenstockError as error:
            return error
        return LogWrite(lease, part.seq, lines)
