"""A backend for Django's Tasks: a task is a job whose kind is the path of its function."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from penstock import Penstock
from penstock.django.applications import application_of
from penstock.django.interface import (
    BaseTaskBackend,
    Task,
    TaskResult,
    TaskResultStatus,
    normalize_json,
    task_enqueued,
)
from penstock.django.results import load_result
from penstock.django.running import handler_of


class PenstockBackend(BaseTaskBackend):
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self._application = application_of(alias, self.options)

    @property
    def app(self) -> Penstock:
        """For everything that Penstock can do and Django's Tasks cannot."""
        return self._application.penstock

    def validate_task(self, task: Task) -> None:
        """Django calls this for each task that is declared: that is how workers know them."""
        super().validate_task(task)
        app = self.app
        if app.handlers.find(task.module_path) is None:
            job = app.job(
                kind=task.module_path,
                queue=task.queue_name,
                attempts=self._application.attempts,
                result="keep",
            )
            job(handler_of(task, type(self)))

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """In the transaction of Django's connection, if the store is in its database."""
        self.validate_task(task)
        options: dict[str, Any] = {
            "queue": task.queue_name,
            "priority": -task.priority,  # Penstock takes smaller numbers first
            "tx": self._application.transaction,
        }
        if task.run_after is not None:
            after = task.run_after
            options["due_at"] = timezone.make_aware(after) if timezone.is_naive(after) else after
        given = {"args": normalize_json(list(args)), "kwargs": normalize_json(kwargs)}
        sent = self.app.enqueue(task.module_path, given, **options)
        result = TaskResult(
            task=task,
            id=sent.id,
            status=TaskResultStatus.READY,
            enqueued_at=timezone.now(),
            started_at=None,
            last_attempted_at=None,
            finished_at=None,
            args=given["args"],
            kwargs=given["kwargs"],
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TaskResult:
        return load_result(self.app, result_id, self.alias)
