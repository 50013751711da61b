"""All errors of the public contract.  Codes are stable; every edge maps all of them."""

from __future__ import annotations

from typing import ClassVar


class PenstockError(Exception):
    """Base of all errors.  `code` is part of the public contract; the text is not."""

    code: ClassVar[str] = "internal"


class InvalidRequest(PenstockError):
    code = "invalid_request"


class InvalidUri(InvalidRequest):
    """The route and the endpoint of a delivery could interpret its URI differently."""

    code = "invalid_uri"


class SqlFailed(InvalidRequest):
    """A SQL statement on the lake is not allowed or failed."""

    code = "sql_failed"


class SqlTimeout(SqlFailed):
    code = "sql_timeout"


class Unauthenticated(PenstockError):
    code = "unauthenticated"


class Forbidden(PenstockError):
    code = "forbidden"


class NotFound(PenstockError):
    code = "not_found"


class _Missing(NotFound):
    """What does not exist is named in `text`."""

    text: ClassVar[str]

    def __init__(self, name: str | int) -> None:
        super().__init__(self.text.format(name[:200] if isinstance(name, str) else name))


class QueueNotFound(_Missing):
    code = "queue_not_found"
    text = "queue {!r} does not exist"


class MessageNotFound(_Missing):
    code = "message_not_found"
    text = "message {!r} does not exist"


class TargetNotFound(QueueNotFound):
    """The target of a move does not exist."""

    code = "target_not_found"


class MoveNotFound(_Missing):
    code = "move_not_found"
    text = "move {!r} does not exist"


class FlowNotFound(_Missing):
    code = "flow_not_found"
    text = "flow {!r} does not exist"


class TopicNotFound(_Missing):
    code = "topic_not_found"
    text = "topic {!r} does not exist"


class SubscriptionNotFound(_Missing):
    code = "subscription_not_found"
    text = "subscription {!r} does not exist"


class WorkerNotFound(_Missing):
    code = "worker_not_found"
    text = "worker {!r} does not exist"


class ScheduleNotFound(_Missing):
    code = "schedule_not_found"
    text = "recurring work {!r} does not exist"


class SignalNotFound(_Missing):
    code = "signal_not_found"
    text = "signal {!r} does not exist, or is no longer kept"


class RouteNotFound(_Missing):
    code = "route_not_found"
    text = "no route matches {!r}"


class CircuitNotFound(_Missing):
    code = "circuit_not_found"
    text = "circuit {!r} does not exist"


class TableNotFound(_Missing):
    code = "table_not_found"
    text = "the pipeline has not computed a table {!r}"


class FleetNotFound(_Missing):
    code = "fleet_not_found"
    text = "no autoscaler manages a fleet {!r}"


class QuestionNotFound(_Missing):
    code = "question_not_found"
    text = "there is no question {!r}"


class QueueUnknown(NotFound):
    """A load source does not know the queue; it may appear later."""

    code = "queue_unknown"


class MethodNotAllowed(PenstockError):
    code = "method_not_allowed"

    def __init__(self, text: str = "", allowed: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.allowed = allowed


class Conflict(PenstockError):
    """The request is well formed but conflicts with the current state."""

    code = "conflict"


class LeaseLost(Conflict):
    """The caller does not hold the lease: it expired, was finished, or never existed."""

    code = "lease_lost"

    def __init__(self, what: str = "") -> None:
        on = f" on message {what}" if what else ""
        super().__init__(f"the lease{on} has ended")


class ClaimNotRepeatable(Conflict):
    """A message that a claim with this key returned has changed since."""

    code = "claim_not_repeatable"


class WrongState(Conflict):
    code = "wrong_state"


class QueueExists(Conflict):
    code = "queue_exists"


class QueueNotEmpty(Conflict):
    code = "queue_not_empty"


class AdviceOutdated(Conflict):
    """Advice that no longer applies: the settings in force or the advice itself have changed."""

    code = "advice_outdated"


class QueueFull(Conflict):
    code = "queue_full"


class TopicNotEmpty(Conflict):
    code = "topic_not_empty"


class NotForDeliveries(Conflict):
    """The queue holds other messages, so it cannot keep deliveries in order or retry them."""

    code = "not_for_deliveries"

    def __init__(self, queue: str) -> None:
        super().__init__(f"queue {queue!r} is not for deliveries, which need a queue of their own")


class MoveRunning(Conflict):
    code = "move_running"


class MoveNotRunning(Conflict):
    code = "move_not_running"


class WorkerGone(Conflict):
    """The worker is unknown, has left, or missed its heartbeats: it must register again."""

    code = "worker_gone"

    def __init__(self, worker_id: str) -> None:
        super().__init__(f"worker {worker_id} is unknown, has left or was lost; register again")


class TooLarge(PenstockError):
    code = "too_large"


class UnsupportedMediaType(PenstockError):
    code = "unsupported_media_type"


class TooManyWaiting(PenstockError):
    code = "too_many_waiting"


class TooManyConnections(PenstockError):
    code = "too_many_connections"


class StoreUnavailable(PenstockError):
    """Nothing was acknowledged; the caller may try again."""

    code = "store_unavailable"


class OutcomeUnknown(StoreUnavailable):
    """The request was started but did not end in time; it may still take effect."""


class TransactionBusy(StoreUnavailable):
    """Another writer blocked the caller's own transaction: roll it back and run it again."""

    code = "transaction_busy"


class ShuttingDown(StoreUnavailable):
    code = "shutting_down"


class StoreRefused(PenstockError):
    """The store cannot keep its guarantees (settings, schema), so it does not start."""

    code = "store_refused"


class StoreDamaged(StoreRefused):
    """Stored bytes are not what was written.  Retrying does not help; an operator must decide."""

    code = "store_damaged"


class JobFailed(Conflict):
    """There is no result to wait for: the job is dead or was cancelled.  Only clients raise it."""

    code = "job_failed"

    def __init__(
        self,
        job_id: str,
        *,
        state: str = "dead",
        reason: str | None = None,
        error: str | None = None,
    ) -> None:
        """`error`: the traceback of its last failed attempt, as stored."""
        parts = [f"job {job_id} is {state}", reason, error]
        super().__init__(": ".join(part for part in parts if part))
        self.job_id = job_id
        self.state = state
        self.reason = reason
        self.error = error


class SourceUnavailable(PenstockError):
    """A load source does not answer, refuses, or returns impossible values."""

    code = "source_unavailable"


class ReplicasUnavailable(PenstockError):
    """The manager of a fleet's workers does not answer, refuses, or returns impossible values."""

    code = "replicas_unavailable"


class FleetNotWatched(PenstockError):
    """The last reading of the fleet is too old to act on."""

    code = "fleet_not_watched"


class FleetsRefused(PenstockError):
    """The fleets file is missing or invalid, so the autoscaler does not start."""

    code = "fleets_refused"


class DefaultProfileMissing(FleetsRefused):
    code = "default_profile_missing"


class SourceUnknown(FleetsRefused):
    code = "source_unknown"


class LakeRefused(PenstockError):
    """The lake does not belong to this store, or is ahead of it, so nothing is written there."""

    code = "lake_refused"


class FilesChanged(Conflict):
    """Another program has changed the files of a table meanwhile; repeat the command."""

    code = "files_changed"


class LakeUnreachable(PenstockError):
    """The object store of the lake did not answer, or rejected the request; try again later."""

    code = "lake_unreachable"


class FileUnreadable(PenstockError):
    """A file of a table is damaged; an operator must replace or delete it."""

    code = "unreadable_file"


def kind_of(error: PenstockError) -> type[PenstockError]:
    """The nearest base class with its own code, which edges map; subclasses are internal."""
    return next(kind for kind in type(error).__mro__ if "code" in vars(kind))


def all_errors() -> list[type[PenstockError]]:
    """All classes with their own code, including the base class: an edge has to map each."""
    found: list[type[PenstockError]] = [PenstockError]
    for error in found:
        found.extend(error.__subclasses__())
    return [error for error in found if "code" in vars(error)]
