"""Tools that change something.  An operator allows them by name; each begins with a dry run."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from penstock.api.manual_acts import Where
from penstock.client.remote.server import Remote
from penstock.domain.message.lifecycle import State
from penstock.domain.message.selection import BulkAct
from penstock.edge.mcp.reading import Document, MessageId, Queue, plain

DryRun = Annotated[
    bool, Field(description="True: only report what would change. Ask the user before false.")
]
Reason = Annotated[str, Field(description="Why; it is kept with the message.")]
Kind = Annotated[str | None, Field(description="Only jobs of this kind.")]

ALLOWED = {
    "redrive": ("redrive_error_group", "redrive_queue", "redrive_message"),
    "pause": ("pause_queue", "resume_queue"),
    "cancel": ("cancel_message", "cancel_messages"),
}


class ActingTools:
    def __init__(self, server: Remote) -> None:
        self._server = server

    def redrive_error_group(self, group_id: str, dry_run: DryRun = True) -> Document:
        """Send the dead messages of an error group back to be handled again."""
        return plain(result=self._server.errors.redrive(group_id, is_dry_run=dry_run))

    def redrive_queue(self, queue: Queue, kind: Kind = None, dry_run: DryRun = True) -> Document:
        """Send the dead messages of a queue back to be handled again."""
        return self._bulk(queue, BulkAct.REDRIVE, State.DEAD, kind, None, dry_run)

    def redrive_message(self, message_id: MessageId, dry_run: DryRun = True) -> Document:
        """Send a dead message back to be handled again."""
        if dry_run:
            return plain(would_redrive=self._server.messages.get(message_id))
        return plain(result=self._server.messages.redrive(message_id))

    def pause_queue(self, queue: Queue, dry_run: DryRun = True) -> Document:
        """Stop claims of a queue. Messages can still be sent; running ones continue."""
        if dry_run:
            return plain(would_pause=self._server.queues.get(queue))
        return plain(queue=self._server.queues.pause(queue))

    def resume_queue(self, queue: Queue, dry_run: DryRun = True) -> Document:
        """Allow claims of a queue again."""
        if dry_run:
            return plain(would_resume=self._server.queues.get(queue))
        return plain(queue=self._server.queues.resume(queue))

    def cancel_message(
        self, message_id: MessageId, reason: Reason, dry_run: DryRun = True
    ) -> Document:
        """Cancel a message that is not running."""
        if dry_run:
            return plain(would_cancel=self._server.messages.get(message_id))
        return plain(result=self._server.messages.cancel(message_id, reason=reason))

    def cancel_messages(
        self, queue: Queue, reason: Reason, kind: Kind = None, dry_run: DryRun = True
    ) -> Document:
        """Cancel the ready messages of a queue, of all kinds or of one."""
        return self._bulk(queue, BulkAct.CANCEL, State.READY, kind, reason, dry_run)

    def _bulk(
        self,
        queue: str,
        act: BulkAct,
        state: State,
        kind: str | None,
        reason: str | None,
        dry_run: bool,
    ) -> Document:
        where = Where(state=state, kind=kind)
        changed = self._server.messages.change_many(
            queue, act, where=where, reason=reason, is_dry_run=dry_run
        )
        return plain(result=changed)
