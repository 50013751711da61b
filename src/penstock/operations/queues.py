"""Queues, and moves of messages out of them."""

from __future__ import annotations

from functools import partial
from typing import Any

from penstock.api import moves, queues
from penstock.api.moves import LatestMoves, Move, StartMove
from penstock.api.queues import Cancelled, ListQueues, Queue, Redrive, Redriven, RemoveQueue
from penstock.domain.access.api_key import Caller, Role, allow, sees
from penstock.domain.errors import InvalidRequest
from penstock.domain.message.selection import BROWSABLE
from penstock.domain.queue.listing import QueueSelection, QueueSort, sort_key
from penstock.domain.queue.queue import QueueSettings, check_name
from penstock.operations.call import Call, Handlers, StatusAnswer, put_answer
from penstock.operations.paging import from_cursor, to_cursor
from penstock.ports.unit_of_work import Steps, Work
from penstock.services.bulk.moves import MoveService
from penstock.services.history import HistoryService
from penstock.services.overview import OverviewService
from penstock.services.queues import QueueService, QueueView


class QueueOperations:
    def __init__(
        self, service: QueueService, history: HistoryService, overview: OverviewService
    ) -> None:
        self._queues = service
        self._history = history
        self._overview = overview

    def handlers(self) -> Handlers:
        return {
            queues.LIST: self.page,
            queues.PUT: self.put,
            queues.CHANGE: self.change,
            queues.GET: self.get,
            queues.REMOVE: self.remove,
            queues.PAUSE: self.pause,
            queues.RESUME: self.resume,
            queues.UNHOLD: self.unhold,
            queues.PURGE: self.purge,
            queues.REDRIVE: self.redrive,
        }

    def page(self, call: Call[None, ListQueues]) -> Steps[queues.Queues]:
        query = call.query
        if query.sort or query.problem or query.state or query.label:
            return (yield from self._selected(call))
        after = query.cursor or ""
        views: list[QueueView] = []
        # Queues that the caller may not see do not count towards the page.
        while len(views) < query.limit:
            page = yield from self._queues.page(
                prefix=query.prefix or "",
                after=after,
                limit=query.limit,
                dead_letter_queue=query.dead_letter_queue,
                contains=query.contains or "",
            )
            views += [view for view in page if sees(call.caller, view.queue.name)]
            if len(page) < query.limit:
                break
            after = page[-1].queue.name
        views = views[: query.limit]
        return queues.Queues(
            queues=[_queue(view, call) for view in views],
            next=views[-1].queue.name if len(views) == query.limit else None,
        )

    def _selected(self, call: Call[None, ListQueues]) -> Steps[queues.Queues]:
        """Reads the counters of all queues; the cursor is the place in the order."""
        query = call.query
        names = None
        if query.problem is not None:
            wrong = yield from self._overview.problems()
            has = (one.snapshot.queue.name for one in wrong if query.problem in one.problems)
            names = frozenset(has)
        if query.state is not None and query.state not in BROWSABLE:
            raise InvalidRequest("state is ready, waiting, leased or dead")
        wanted = QueueSelection(
            prefix=query.prefix or "",
            contains=query.contains or "",
            dead_letter_queue=query.dead_letter_queue,
            label=query.label,
            state=query.state,
            names=names,
        )
        views = [
            view
            for view in (yield from self._history.all_queues())
            if wanted.matches(view.queue, view.counts) and sees(call.caller, view.queue.name)
        ]
        order = query.sort or QueueSort.NAME
        views.sort(key=lambda view: sort_key(order, view.queue, view.counts))
        if query.ascending:
            views.reverse()
        [place] = from_cursor(query.cursor, 1) or [0]
        start = max(0, place)
        end = start + query.limit
        return queues.Queues(
            queues=[_queue(view, call) for view in views[start:end]],
            next=to_cursor(end) if end < len(views) else None,
        )

    def put(self, call: Call[QueueSettings, None]) -> Work[Queue | StatusAnswer[Queue]]:
        allow_dead_letters(call.caller, call.body.dead_letter_queue)
        put = self._queues.put(call.path["queue"], call.body, only_new=call.only_new)
        return put.map(lambda done: put_answer(_queue(done.view, call), done.is_new))

    def change(self, call: Call[dict[str, Any], None]) -> Work[Queue]:
        allow_dead_letters(call.caller, call.body.get("dead_letter_queue"))
        changed = self._queues.patch(call.path["queue"], call.body)
        return changed.map(lambda view: _queue(view, call))

    def get(self, call: Call[None, None]) -> Work[Queue]:
        return self._queues.get(call.path["queue"]).map(lambda view: _queue(view, call))

    def remove(self, call: Call[None, RemoveQueue]) -> Steps[None]:
        name, force = call.path["queue"], call.query.force
        if force:
            yield from self._queues.purge(name)
        yield from self._queues.remove(name, force=force)

    def pause(self, call: Call[None, None]) -> Work[Queue]:
        paused = self._queues.pause(call.path["queue"], is_paused=True)
        return paused.map(lambda view: _queue(view, call))

    def resume(self, call: Call[None, None]) -> Work[Queue]:
        resumed = self._queues.pause(call.path["queue"], is_paused=False)
        return resumed.map(lambda view: _with_note(view, call))

    def unhold(self, call: Call[None, None]) -> Work[Queue]:
        return self._queues.unhold(call.path["queue"]).map(lambda view: _queue(view, call))

    def purge(self, call: Call[None, None]) -> Steps[Cancelled]:
        cancelled = yield from self._queues.purge(call.path["queue"])
        return Cancelled(cancelled=cancelled)

    def redrive(self, call: Call[Redrive, None]) -> Steps[Redriven]:
        limit, target = call.body.limit, call.body.to
        if limit is not None and limit < 1:
            raise InvalidRequest(f"limit must be at least 1, not {limit}")
        if target is not None:
            allow(call.caller, Role.OPERATE, check_name(target))
        redriven = yield from self._queues.redrive(call.path["queue"], to=target, limit=limit)
        return Redriven(redriven=redriven)


def allow_dead_letters(caller: Caller, queue: Any) -> None:
    """Check the role for the dead-letter queue too, because dead letters are sent to it."""
    if isinstance(queue, str):
        allow(caller, Role.OPERATE, queue)


def _queue(view: QueueView, call: Call[Any, Any]) -> Queue:
    return Queue.of(view.queue, view.counts, call.instant, oldest_ready_at=view.oldest_ready_at)


def _with_note(view: QueueView, call: Call[Any, Any]) -> Queue:
    queue = view.queue
    if queue.held_by is None:
        return _queue(view, call)
    # Claims are still stopped, so a plain 200 would mislead.
    return Queue.of(
        queue,
        view.counts,
        call.instant,
        oldest_ready_at=view.oldest_ready_at,
        note=(
            f"circuit {queue.held_by} holds the queue, whether paused or not; "
            f"POST /v1/queues/{queue.name}/unhold ends the hold"
        ),
    )


class MoveOperations:
    def __init__(self, service: MoveService) -> None:
        self._moves = service

    def handlers(self) -> Handlers:
        return {
            moves.START: self.start,
            moves.LIST: self.latest,
            moves.GET: self.get,
            moves.CANCEL: self.cancel,
        }

    def start(self, call: Call[StartMove, None]) -> Work[Move]:
        target = call.body.to
        if target is not None:
            allow(call.caller, Role.OPERATE, check_name(target))
        started = self._moves.start(
            call.path["queue"], target=target, max_per_second=call.body.max_per_second
        )
        return started.map(partial(Move.of, instant=call.instant))

    def latest(self, call: Call[None, LatestMoves]) -> Work[moves.Moves]:
        found = self._moves.of_source(call.path["queue"], limit=call.query.limit)
        return found.map(
            lambda tasks: moves.Moves(moves=[Move.of(task, call.instant) for task in tasks])
        )

    def get(self, call: Call[None, None]) -> Steps[Move]:
        task = yield from self._moves.get(call.path["move"])
        allow(call.caller, Role.READ, task.source)
        return Move.of(task, call.instant)

    def cancel(self, call: Call[None, None]) -> Steps[Move]:
        task = yield from self._moves.get(call.path["move"])
        allow(call.caller, Role.OPERATE, task.source)
        cancelled = yield from self._moves.cancel(task.task_id)
        return Move.of(cancelled, call.instant)
