"""What the fields and parameters of workers, tasks and facts mean."""

from __future__ import annotations

from typing import Any

FIELDS = {
    "at": "When it happened.",
    "enqueuedAt": "When the task was enqueued.",
    "finishedAt": "When the task ended.",
    "jobData": "What the worker needs to know.",
    "jobEntityId": "What the task is about.",
    "jobKind": "The kind of the task.",
    "startedAt": "When a worker took it.",
    "workerId": "The worker's id.",
    "NextTaskIn.kinds": "Only tasks of these kinds; null: of those that the worker has named.",
    "NextTaskIn.wait_ms": "How long to wait for a task.",
    "EnqueuedOut.id": "The task's id.",
    "TaskOutcomeIn.outcome": "How it went.",
    "TaskProgressIn.progress": "Any JSON value.",
    "TaskEndOut.id": "The task's id.",
    "TaskEndOut.status": "How far the task is.",
    "TaskOut.id": "The task's id.",
    "TaskStatusOut.attempts": "How often it was given to a worker.",
    "TaskStatusOut.error": "What is known of the last attempt that came to nothing.",
    "TaskStatusOut.id": "The task's id.",
    "TaskStatusOut.progress": "What its worker has told of it, any JSON value.",
    "TaskStatusOut.status": "How far the task is.",
}

PARAMETERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "task": ("The task's id.", {"type": "string", "format": "uuid"}, ""),
    "worker": ("The worker's id.", {"type": "string"}, ""),
}
