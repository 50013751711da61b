"""Groups of errors of dead messages."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial

from penstock.api import browsing
from penstock.api.browsing import ErrorGroup, ErrorGroups, ListErrors, RedriveErrors
from penstock.api.manual_acts import Changed
from penstock.api.operation import ToInstant
from penstock.domain.access.api_key import sees
from penstock.domain.message.error_line import ErrorName, error_line
from penstock.domain.message.selection import BulkAct, BulkRequest
from penstock.operations.call import Call, Handlers
from penstock.operations.messages import act_on_many
from penstock.ports.unit_of_work import Steps, ThreadedStep
from penstock.services.bulk.selection import SelectionService
from penstock.services.errors import DeadMessage, ErrorService


class ErrorOperations:
    def __init__(self, service: ErrorService, selections: SelectionService) -> None:
        self._errors = service
        self._selections = selections

    def handlers(self) -> Handlers:
        return {browsing.LIST_ERRORS: self.groups, browsing.REDRIVE_ERRORS: self.redrive}

    def groups(self, call: Call[None, ListErrors]) -> Steps[ErrorGroups]:
        dead = yield from self._errors.dead(call.query.queue, sees=partial(sees, call.caller))
        groups = yield from ThreadedStep(partial(_groups, dead.messages, call.instant))
        return ErrorGroups(groups=groups, is_cut=dead.is_cut)

    def redrive(self, call: Call[RedriveErrors, None]) -> Steps[Changed]:
        wanted = call.body
        dead = yield from self._errors.dead(wanted.queue, sees=partial(sees, call.caller))
        ids = yield from ThreadedStep(partial(_ids_in, wanted.error, dead.messages))
        if wanted.is_dry_run:
            return Changed(len(ids), 0, 0, dead.is_cut)
        request = BulkRequest(act=BulkAct.REDRIVE)
        changed = yield from act_on_many(self._selections, ids, request)
        return Changed(len(ids), changed, len(ids) - changed, dead.is_cut)


def _groups(dead: list[DeadMessage], instant: ToInstant) -> list[ErrorGroup]:
    """The largest first.  Not for an event loop: parses the errors of all these messages."""
    groups: defaultdict[ErrorName, list[DeadMessage]] = defaultdict(list)
    for one in dead:
        groups[one.name].append(one)
    most_first = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0].error))
    return [_group(name, members, instant) for name, members in most_first]


def _ids_in(group_id: str, dead: list[DeadMessage]) -> list[str]:
    return [one.message.id for one in dead if one.name.group_id == group_id]


def _group(name: ErrorName, members: list[DeadMessage], instant: ToInstant) -> ErrorGroup:
    latest = max(members, key=lambda one: one.at)
    return ErrorGroup(
        id=name.group_id,
        error=name.error,
        place=name.place,
        messages=len(members),
        first_at=instant(min(one.at for one in members)),
        last_at=instant(latest.at),
        queues=dict(Counter(one.queue for one in members).most_common()),
        kinds=sorted({one.message.kind for one in members if one.message.kind is not None}),
        sample_id=latest.message.id,
        sample_line=error_line(latest.error),
        sample_error=latest.error,
    )
