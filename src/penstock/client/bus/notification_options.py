"""The keyword arguments of `NotificationQueue` methods."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TypedDict

from penstock.api.notifications import Which
from penstock.client.jobs.options import JobOptions


class RecordOptions(JobOptions, total=False):
    kind: str | None
    user_token: str | None  # passed to the handler


class TagOptions(TypedDict, total=False):
    """Both tags, one tag in its place, or one tag in either place; at least one is required."""

    tag: str | None
    tag1: str | None
    tag2: str | None
    everywhere: bool  # search all queues


class FindOptions(TagOptions, total=False):
    which: Which  # unclaimed, being handled, or both
    due_from: datetime | None  # inclusive
    due_before: datetime | None  # exclusive


class PastOptions(TagOptions, total=False):
    from_at: datetime | None  # inclusive
    to_at: datetime | None  # exclusive


class ChangeOptions(TypedDict, total=False):
    due_at: datetime | None
    body: object
    tags: Sequence[str] | None
    kind: str | None
