"""What a worker wants done, in the words of the services and in those of the HTTP API."""

from __future__ import annotations

import logging

import msgspec

from penstock.api.leases import BatchAct
from penstock.domain.errors import PenstockError, StoreUnavailable
from penstock.domain.message.lease import LeaseAct, Verb
from penstock.ports.work import WorkAct
from penstock.services.messages import MessageService

_log = logging.getLogger("penstock.client")


def planned(messages: MessageService, act: WorkAct) -> LeaseAct:
    """Raises LeaseLost for a receipt that is none, InvalidRequest for what makes no sense."""
    return messages.plan(
        messages.read_receipt(act.receipt),
        act.verb,
        delay_ms=act.delay_ms,
        text=act.text,
        progress=act.progress,
        is_start=act.is_start,
    )


def over_http(act: WorkAct) -> BatchAct:
    match act.verb:
        case Verb.FAIL | Verb.TIME_OUT:
            return BatchAct(act.receipt, act.verb, error=act.text, retry_in_ms=act.delay_ms)
        case Verb.CRASH:
            return BatchAct(act.receipt, act.verb, error=act.text)
        case Verb.EXTEND:
            return BatchAct(
                act.receipt,
                act.verb,
                lease_ms=act.delay_ms,
                is_start=act.is_start or None,
                progress=None if act.progress is None else msgspec.Raw(act.progress.encode()),
            )
        case Verb.BURY | Verb.CANCEL:
            return BatchAct(act.receipt, act.verb, reason=act.text)
        case Verb.SNOOZE:
            return BatchAct(act.receipt, act.verb, delay_ms=act.delay_ms, reason=act.text)
        case Verb.RELEASE:
            return BatchAct(act.receipt, act.verb, delay_ms=act.delay_ms)
        case Verb.COMPLETE:
            return BatchAct(act.receipt, act.verb)


def log_refused_claim(queue: str, error: PenstockError) -> None:
    """Of one queue among several.  An outage is reported by the next claim, once for all."""
    level = logging.DEBUG if isinstance(error, StoreUnavailable) else logging.WARNING
    _log.log(level, "cannot claim from %r: %s", queue, error)


class DamagedQueues:
    """Queues that cannot be claimed from; the others still can.  Each is logged once."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def skip(self, queue: str, error: PenstockError) -> None:
        if queue not in self._logged:
            self._logged.add(queue)
            _log.error("skipping queue %r: %s", queue, error)
