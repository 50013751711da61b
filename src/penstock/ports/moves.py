"""The port of move tasks, which move messages between queues in the background."""

from __future__ import annotations

from typing import Protocol

from penstock.domain.message.move_task import MoveTask


class MoveStore(Protocol):
    """Move tasks, and the messages that they move."""

    def place(self) -> int:
        """A place behind all queued messages."""
        ...

    def add(self, task: MoveTask) -> None:
        """Raises MoveRunning while another task of the same source is active."""
        ...

    def find(self, task_id: str) -> MoveTask | None: ...
    def lock(self, task_id: str) -> MoveTask | None:
        """Locked until the end of this transaction."""
        ...

    def lock_active(self, task_id: str) -> MoveTask | None:
        """The same, but None if it has ended or another node has it locked."""
        ...

    def of_source(self, queue_no: int, *, limit: int) -> list[MoveTask]:
        """Newest first."""
        ...

    def active(self) -> list[str]: ...
    def save(self, task: MoveTask) -> None:
        """Also forgets the oldest ended tasks of its source when it has ended."""
        ...

    def forget(self, *, before_at: int) -> int: ...
    def move_some(self, task: MoveTask, *, limit: int, now: int) -> int: ...
    def is_done(self, task: MoveTask, *, now: int) -> bool:
        """Whether nothing is left that the task could move."""
        ...

    def why_left(self, task: MoveTask, *, now: int) -> str | None:
        """Why messages that should have gone back to their queues were left; None: none were."""
        ...
