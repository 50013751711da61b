"""Recurring work."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from penstock.api import recurring
from penstock.api.operation import PageQuery
from penstock.api.recurring import Instants, NewRecurring, Preview, Retire, Retired, Run, rhythm_of
from penstock.domain.access.api_key import Role, allow, sees
from penstock.domain.errors import ScheduleNotFound
from penstock.domain.queue.queue import check_name
from penstock.domain.schedule.schedule import Schedule
from penstock.operations.call import Call, Handlers
from penstock.operations.drafts import text_of
from penstock.ports.unit_of_work import Steps
from penstock.services.recurring import RecurringService


class RecurringOperations:
    def __init__(self, service: RecurringService) -> None:
        self._recurring = service

    def handlers(self) -> Handlers:
        return {
            recurring.LIST: self.page,
            recurring.PREVIEW_RHYTHM: self.preview_rhythm,
            recurring.RETIRE: self.retire,
            recurring.PUT: self.put,
            recurring.GET: self.get,
            recurring.REMOVE: self.remove,
            recurring.PREVIEW: self.preview,
            recurring.PAUSE: self.pause,
            recurring.RESUME: self.resume,
            recurring.RUN: self.run,
        }

    def page(self, call: Call[None, PageQuery]) -> Steps[recurring.RecurringPage]:
        limit, after = call.query.limit, call.query.cursor or ""
        found: list[Schedule] = []
        # Schedules that the caller may not see do not count towards the page.
        while len(found) < limit:
            page = yield from self._recurring.page(after=after, limit=limit)
            found += [s for s in page if sees(call.caller, s.template.queue)]
            if len(page) < limit:
                break
            after = page[-1].name
        found = found[:limit]
        following = found[-1].name if len(found) == limit else None
        return recurring.RecurringPage(
            recurring=[_answer(call, schedule) for schedule in found], next=following
        )

    def put(self, call: Call[NewRecurring, None]) -> Steps[recurring.Recurring]:
        wanted = call.body
        allow(call.caller, Role.OPERATE, check_name(wanted.queue))
        with suppress(ScheduleNotFound):  # the caller also needs the role for its present queue
            yield from self._schedule(call, Role.OPERATE)
        schedule = yield from self._recurring.declare(
            call.path["schedule"],
            rhythm_of(wanted),
            wanted.template(text_of(wanted.body)),
            catch_up=wanted.catch_up,
            overlap=wanted.overlap,
            owner=wanted.owner,
        )
        return _answer(call, schedule)

    def retire(self, call: Call[Retire, None]) -> Steps[Retired]:
        owner, declared = call.body.owner, call.body.declared

        def may(schedule: Schedule) -> bool:
            return sees(call.caller, schedule.template.queue)

        retired = yield from self._recurring.dropped(owner, declared, may=may)
        if retired:
            retired = yield from self._recurring.retire(owner, declared, may=may)
        return Retired(retired=retired)

    def get(self, call: Call[None, None]) -> Steps[recurring.Recurring]:
        return _answer(call, (yield from self._schedule(call, Role.READ)))

    def remove(self, call: Call[None, None]) -> Steps[None]:
        schedule = yield from self._schedule(call, Role.OPERATE)
        yield from self._recurring.remove(schedule.name)

    def pause(self, call: Call[None, None]) -> Steps[recurring.Recurring]:
        schedule = yield from self._schedule(call, Role.OPERATE)
        return _answer(call, (yield from self._recurring.pause(schedule.name)))

    def resume(self, call: Call[None, None]) -> Steps[recurring.Recurring]:
        schedule = yield from self._schedule(call, Role.OPERATE)
        return _answer(call, (yield from self._recurring.resume(schedule.name)))

    def run(self, call: Call[None, None]) -> Steps[Run]:
        schedule = yield from self._schedule(call, Role.OPERATE)
        return Run(id=(yield from self._recurring.run_now(schedule.name)))

    def preview(self, call: Call[None, recurring.Count]) -> Steps[Instants]:
        schedule = yield from self._schedule(call, Role.READ)
        instants = yield from self._recurring.preview(schedule.rhythm, count=call.query.count)
        return Instants(instants=[call.instant(at) for at in instants])

    def preview_rhythm(self, call: Call[Preview, None]) -> Steps[Instants]:
        instants = yield from self._recurring.preview(rhythm_of(call.body), count=call.body.count)
        return Instants(instants=[call.instant(at) for at in instants])

    def _schedule(self, call: Call[Any, Any], role: Role) -> Steps[Schedule]:
        """The schedule, if the caller has the role for its queue."""
        schedule = yield from self._recurring.get(call.path["schedule"])
        allow(call.caller, role, schedule.template.queue)
        return schedule


def _answer(call: Call[Any, Any], schedule: Schedule) -> recurring.Recurring:
    return recurring.Recurring.of(schedule, call.instant, call.json_value)
