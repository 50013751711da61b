"""Run a task in a worker: the handler that Penstock calls for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import iscoroutinefunction
from traceback import format_exception
from typing import Any

from django.utils import timezone

from penstock import current
from penstock.django.interface import (
    Task,
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultStatus,
    normalize_json,
    task_finished,
    task_started,
)


def handler_of(task: Task, sender: type) -> Callable[..., Any]:
    """Takes the arguments as `enqueue` stores them: a list and an object."""

    async def run_async(args: list[Any], kwargs: dict[str, Any]) -> Any:
        with _reported(task, sender, args, kwargs) as attempt:
            return attempt.note(await task.func(*attempt.arguments, **kwargs))

    def run(args: list[Any], kwargs: dict[str, Any]) -> Any:
        with _reported(task, sender, args, kwargs) as attempt:
            return attempt.note(task.func(*attempt.arguments, **kwargs))

    return run_async if iscoroutinefunction(task.func) else run


class _Attempt:
    def __init__(self, task: Task, result: TaskResult) -> None:
        self.result = result
        context = [TaskContext(task_result=result)] if task.takes_context else []
        self.arguments = [*context, *result.args]

    def note(self, value: object) -> object:
        plain = normalize_json(value)
        self.change(_return_value=plain)
        return plain

    def change(self, **fields: object) -> None:
        for name, value in fields.items():  # a frozen dataclass, as Django's own backends change it
            object.__setattr__(self.result, name, value)


@contextmanager
def _reported(
    task: Task, sender: type, args: list[Any], kwargs: dict[str, Any]
) -> Iterator[_Attempt]:
    """Send Django's signals around the attempt."""
    job, now = current(), timezone.now()
    result = TaskResult(
        task=task,
        id=job.id,
        status=TaskResultStatus.RUNNING,
        enqueued_at=job.sent_at,
        started_at=now,
        last_attempted_at=now,
        finished_at=None,
        args=args,
        kwargs=kwargs,
        backend=task.backend,
        errors=[],
        worker_ids=["penstock"] * job.attempts,
    )
    attempt = _Attempt(task, result)
    task_started.send(sender=sender, task_result=result)
    try:
        yield attempt
    except Exception as error:
        path = f"{type(error).__module__}.{type(error).__qualname__}"
        text = "".join(format_exception(error))
        result.errors.append(TaskError(exception_class_path=path, traceback=text))
        attempt.change(status=TaskResultStatus.FAILED, finished_at=timezone.now())
        task_finished.send(sender=sender, task_result=result)
        raise
    attempt.change(status=TaskResultStatus.SUCCESSFUL, finished_at=timezone.now())
    task_finished.send(sender=sender, task_result=result)
