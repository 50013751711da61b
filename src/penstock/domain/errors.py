"""All errors of the public contract.  Codes are stable; every edge maps all of them."""

from __future__ import annotations

from typing import ClassVar


class PenstockError(Exception):
    """Base of all errors.  `code` is part of the public contract; the text is not."""

    code: ClassVar[str] = "internal"


class InvalidRequest(PenstockError):
    code = "invalid_request"


class InvalidUri(InvalidRequest):
    """The URI of a delivery could mean one place to its route and another to the endpoint."""

    code = "invalid_uri"


class Unauthenticated(PenstockError):
    code = "unauthenticated"


class Forbidden(PenstockError):
    code = "forbidden"


class NotFound(PenstockError):
    code = "not_found"


class QueueNotFound(NotFound):
    code = "queue_not_found"

    def __init__(self, queue: str | int) -> None:
        super().__init__(f"there is no queue {queue!r}")


class MessageNotFound(NotFound):
    code = "message_not_found"

    def __init__(self, message_id: str) -> None:
        super().__init__(f"there is no message {message_id!r}")


class TargetNotFound(QueueNotFound):
    """The queue that messages were to be moved to, not the one they are in."""

    code = "target_not_found"


class MoveNotFound(NotFound):
    code = "move_not_found"

    def __init__(self, task_id: str) -> None:
        super().__init__(f"there is no move {task_id!r}")


class TopicNotFound(NotFound):
    code = "topic_not_found"

    def __init__(self, topic: str) -> None:
        super().__init__(f"there is no topic {topic!r}")


class SubscriptionNotFound(NotFound):
    code = "subscription_not_found"

    def __init__(self, subscription: str) -> None:
        super().__init__(f"there is no subscription {subscription!r}")


class WorkerNotFound(NotFound):
    code = "worker_not_found"

    def __init__(self, worker_id: str) -> None:
        super().__init__(f"there is no worker {worker_id!r}")


class ScheduleNotFound(NotFound):
    code = "schedule_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no recurring work {name!r}")


class RouteNotFound(NotFound):
    code = "route_not_found"

    def __init__(self, uri: str) -> None:
        super().__init__(f"no route matches {uri[:200]!r}")


class CircuitNotFound(NotFound):
    code = "circuit_not_found"

    def __init__(self, circuit_hash: str) -> None:
        super().__init__(f"there is no circuit {circuit_hash!r}")


class TableNotFound(NotFound):
    code = "table_not_found"

    def __init__(self, table: str) -> None:
        super().__init__(f"the pipeline has not made a table {table!r}")


class FleetNotFound(NotFound):
    code = "fleet_not_found"

    def __init__(self, fleet: str) -> None:
        super().__init__(f"no autoscaler manages a fleet {fleet!r}")


class QueueUnknown(NotFound):
    """A load source does not know the queue; it may appear later."""

    code = "queue_unknown"


class MethodNotAllowed(PenstockError):
    code = "method_not_allowed"

    def __init__(self, text: str = "", allowed: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.allowed = allowed


class Conflict(PenstockError):
    """The request is well formed but does not fit the present state."""

    code = "conflict"


class LeaseLost(Conflict):
    """The caller does not hold the lease: it expired, was finished, or never existed."""

    code = "lease_lost"

    def __init__(self, what: str = "") -> None:
        on = f" on message {what}" if what else ""
        super().__init__(f"the lease{on} is no longer held")


class ClaimNotRepeatable(Conflict):
    """A claim with this key has returned messages, and one of them has changed since."""

    code = "claim_not_repeatable"


class WrongState(Conflict):
    code = "wrong_state"


class QueueExists(Conflict):
    code = "queue_exists"


class QueueNotEmpty(Conflict):
    code = "queue_not_empty"


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
    """The request was begun and did not end in time; it may still be carried out."""


class TransactionBusy(StoreUnavailable):
    """Another writer blocked the caller's own transaction: roll it back and run it again."""

    code = "transaction_busy"


class ShuttingDown(StoreUnavailable):
    code = "shutting_down"


class StoreRefused(PenstockError):
    """The store cannot keep its promises (settings, schema), so it does not start."""

    code = "store_refused"


class StoreDamaged(StoreRefused):
    """Stored bytes are not what was written.  Retrying does not help; an operator must decide."""

    code = "store_damaged"


class SourceUnavailable(PenstockError):
    """A load source does not answer, refuses, or answers with something impossible."""

    code = "source_unavailable"


class ReplicasUnavailable(PenstockError):
    """The manager of a fleet's workers does not answer, refuses, or answers the impossible."""

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


def kind_of(error: PenstockError) -> type[PenstockError]:
    """The nearest class with a code of its own, which edges know; lower layers have finer ones."""
    return next(kind for kind in type(error).__mro__ if "code" in vars(kind))


def all_errors() -> list[type[PenstockError]]:
    """All classes with a code of their own, root included: what an edge has to map."""
    found: list[type[PenstockError]] = [PenstockError]
    for error in found:
        found.extend(error.__subclasses__())
    return [error for error in found if "code" in vars(error)]
