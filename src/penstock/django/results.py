"""What became of a task, from its stored message and its history."""

from __future__ import annotations

import re
from typing import Any

from django.utils.module_loading import import_string

from penstock import Penstock
from penstock.api import history
from penstock.api.messages import Message
from penstock.django.interface import (
    Task,
    TaskError,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
)
from penstock.domain.errors import PenstockError
from penstock.domain.message.lifecycle import State

_STATUS = {
    State.WAITING: TaskResultStatus.READY,
    State.READY: TaskResultStatus.READY,
    State.LEASED: TaskResultStatus.RUNNING,
    State.DONE: TaskResultStatus.SUCCESSFUL,
    State.DEAD: TaskResultStatus.FAILED,
    State.CANCELLED: TaskResultStatus.FAILED,
}
# The last line of a traceback: the class and, if there is one, the text.
_RAISED = re.compile(r"^([A-Za-z_][\w.]*)(?::|$)", re.MULTILINE)


def load_result(app: Penstock, result_id: str, backend: str) -> TaskResult:
    """Raises TaskResultDoesNotExist, also for a task whose history was dropped."""
    try:
        message = app.jobs.get(result_id)
        ended = app.backend.channel.request(history.RESULT, id=result_id)
        past = app.backend.channel.request(history.GET, id=result_id)
    except PenstockError as error:
        raise TaskResultDoesNotExist(result_id) from error
    given = message.body if isinstance(message.body, dict) else {}
    found = TaskResult(
        task=_task_of(message, backend),
        id=result_id,
        status=_STATUS[ended.state],
        enqueued_at=message.sent_at,
        started_at=message.first_leased_at,
        last_attempted_at=message.leased_at,
        finished_at=ended.finished_at,
        args=given.get("args", []),
        kwargs=given.get("kwargs", {}),
        backend=backend,
        errors=_errors(past.attempts, ended.error),
        worker_ids=["penstock"] * message.attempts,
    )
    object.__setattr__(found, "_return_value", ended.result)
    return found


def _task_of(message: Message, backend: str) -> Task:
    try:
        task = import_string(message.kind)
    except (ImportError, TypeError) as error:
        raise TaskResultDoesNotExist(message.id) from error
    if not isinstance(task, Task):
        raise TaskResultDoesNotExist(message.id)
    return task.using(backend=backend, queue_name=message.queue, priority=-message.priority)


def _errors(attempts: list[history.Attempt], last: str | None) -> list[TaskError]:
    texts = [one.error for one in sorted(attempts, key=lambda one: one.lease_no) if one.error]
    if last is not None and last not in texts:
        texts.append(last)
    return [TaskError(exception_class_path=_class_of(text), traceback=text) for text in texts]


def _class_of(text: str) -> str:
    found: list[Any] = _RAISED.findall(text)
    name = str(found[-1]) if found else "Exception"
    return name if "." in name else f"builtins.{name}"
