"""Move tasks: starts, lists, looks up and cancels them; and the step that the duty runs."""

from __future__ import annotations

from penstock.domain.errors import InvalidRequest, MoveNotFound, QueueNotFound, TargetNotFound
from penstock.domain.message import move_task as move
from penstock.domain.message.draft import ID_DIGITS, uuid7
from penstock.domain.message.move_task import MoveState, MoveTask
from penstock.domain.queue.queue import Queue, check_name
from penstock.ports.clock import Clock, Dice
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import Work, read, write


class MoveService:
    def __init__(self, store: Store, clock: Clock, dice: Dice) -> None:
        self._store = store
        self._clock = clock
        self._dice = dice

    def start(
        self, source: str, *, target: str | None = None, max_per_second: int | None = None
    ) -> Work[MoveTask]:
        """Move messages to `target`, or each to the queue it died in.

        Raises InvalidRequest.  The ticket raises it, too, if the target has another ordering, and
        QueueNotFound, TargetNotFound and MoveRunning.
        """
        move.check_rate(max_per_second)
        if target is not None and check_name(target) == source:
            raise InvalidRequest("a queue cannot be moved to itself")
        now = self._clock.now()
        task_id = uuid7(now, self._dice.digits(ID_DIGITS))

        def do(session: Session) -> MoveTask:
            found = session.queues.named(source)
            counts = session.queues.counts([found.queue_no])[found.queue_no]
            task = move.new_task(
                task_id,
                source=(found.queue_no, found.name),
                target=None if target is None else _target(session, target, found),
                max_per_second=max_per_second,
                to_move=counts.dead + counts.ready + counts.waiting,
                before_no=session.moves.place(),
                now=now,
            )
            session.moves.add(task)
            return task

        return write(self._store, do)

    def of_source(self, source: str, *, limit: int = move.KEPT_PER_SOURCE) -> Work[list[MoveTask]]:
        """The tasks of one source, newest first; raises QueueNotFound."""

        def do(session: Session) -> list[MoveTask]:
            return session.moves.of_source(session.queues.named(source).queue_no, limit=limit)

        return read(self._store, do)

    def get(self, task_id: str) -> Work[MoveTask]:
        return read(self._store, lambda session: _existing(session.moves.find(task_id), task_id))

    def cancel(self, task_id: str) -> Work[MoveTask]:
        """What was moved stays moved.  Raises MoveNotFound or MoveNotRunning."""

        def do(session: Session) -> MoveTask:
            found = _existing(session.moves.lock(task_id), task_id)
            cancelled = move.cancel(found)
            session.moves.save(cancelled)
            return cancelled

        return write(self._store, do)

    def active(self) -> Work[list[str]]:
        return read(self._store, lambda session: session.moves.active())

    def step(self, task_id: str, *, now: int) -> Work[MoveTask | None]:
        """Move and count as many messages as the rate allows by now, in one transaction.

        None if this node has nothing to do: the task has ended, or another node has it locked.
        """

        def do(session: Session) -> MoveTask | None:
            task = session.moves.lock_active(task_id)
            if task is None:
                return None
            after = _step(session, task, now)
            if after != task:
                session.moves.save(after)
            return after

        return write(self._store, do)


def _step(session: Session, task: MoveTask, now: int) -> MoveTask:
    if task.state is MoveState.CANCELLING:
        return move.finish_cancel(task, now=now)
    if not _has_queues(session, task):
        return move.fail(task, now=now, reason=move.QUEUE_NOT_FOUND)
    limit = move.allowance(task, now=now)
    if not limit:
        return task
    moved = session.moves.move_some(task, limit=limit, now=now)
    task = move.advance(task, now=now, moved=moved)
    if not session.moves.is_done(task, now=now):
        return task
    reason = session.moves.why_left(task, now=now)
    return (
        move.complete(task, now=now) if reason is None else move.fail(task, now=now, reason=reason)
    )


def _has_queues(session: Session, task: MoveTask) -> bool:
    try:
        session.queues.get(task.source_no)
        if task.target_no is not None:
            session.queues.get(task.target_no)
    except QueueNotFound:
        return False
    return True


def _target(session: Session, name: str, source: Queue) -> tuple[int, str]:
    found = session.queues.find(name)
    if found is None:
        raise TargetNotFound(name)
    if found.is_ordered is not source.is_ordered:
        # Groups would lose their order, or an ordered queue get messages without a group.
        raise InvalidRequest("messages can only be moved to a queue with the same ordering")
    return found.queue_no, found.name


def _existing(task: MoveTask | None, task_id: str) -> MoveTask:
    if task is None:
        raise MoveNotFound(task_id)
    return task
