"""Builders with defaults, so that a test mentions only what matters to it."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec

from penstock.domain.access.api_key import ApiKey, Role, hash_secret
from penstock.domain.limits import DEFAULT_LIMITS, MINUTE, Limits
from penstock.domain.message.draft import Draft, NewMessage, send, uuid7
from penstock.domain.message.lease import Lease, LeaseAct, Verb
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.message.retry import Fixed
from penstock.domain.queue.queue import Queue, QueueSettings
from penstock.domain.scaling.fleet_run import Decision, FleetState
from penstock.domain.scaling.fleet_status import FleetStatus, LastChange
from penstock.domain.scaling.recommendation import (
    Profile,
    ReadingWindow,
    Replicas,
    Sample,
    analyse,
)
from tests.clocks import NOON

BACKOFF_MS = 10_000

_numbers = itertools.count(1)


def an_id(now: int = NOON) -> str:
    """Never the same twice."""
    return uuid7(now, f"{next(_numbers):019x}")


def some_settings(**changes: Any) -> QueueSettings:
    """The defaults, with a back-off that is easy to calculate."""
    settings = QueueSettings(backoff=Fixed(BACKOFF_MS))
    return msgspec.structs.replace(settings, **changes)


def a_queue(queue_no: int = 1, name: str = "mail", **settings: Any) -> Queue:
    return Queue(queue_no=queue_no, name=name, settings=some_settings(**settings), created_at=NOON)


def a_message(**fields: Any) -> Message:
    """Ready, never claimed, third in line of queue 1."""
    defaults: dict[str, Any] = {
        "id": an_id(),
        "queue_no": 1,
        "due_at": NOON,
        "sent_at": NOON,
        "message_no": 3,
        "order_no": 3,
    }
    return Message(**(defaults | fields))


def a_leased_message(**fields: Any) -> Message:
    """Claimed at noon for a minute, for the first time unless said otherwise."""
    defaults: dict[str, Any] = {
        "state": State.LEASED,
        "attempts": 1,
        "lease_no": 1,
        "due_at": NOON + MINUTE,
        "leased_at": NOON,
        "first_leased_at": NOON,
        "leased_by": "worker-1",
    }
    return a_message(**(defaults | fields))


def a_message_in(state: State, **fields: Any) -> Message:
    """One in that state that could have come about."""
    match state:
        case State.WAITING:
            return a_message(**({"state": state, "due_at": NOON + MINUTE} | fields))
        case State.READY:
            return a_message(**fields)
        case State.DEAD:
            return a_leased_message(**({"state": state, "reason": "broken"} | fields))
        case _:
            return a_leased_message(**({"state": state} | fields))


def a_draft(**fields: Any) -> Draft:
    return Draft(**({"body": '{"to": "a@example.org"}'} | fields))


def a_new_message(
    queue: Queue, *, now: int = NOON, limits: Limits = DEFAULT_LIMITS, **draft: Any
) -> NewMessage:
    return send(a_draft(**draft), queue, now=now, message_id=an_id(now), limits=limits)


def an_act(verb: Verb, message: Message, *, now: int = NOON, **fields: Any) -> LeaseAct:
    return LeaseAct(lease=Lease.of(message), verb=verb, now=now, **fields)


def a_key(secret: str = "pk_1_secret", **fields: Any) -> ApiKey:
    defaults: dict[str, Any] = {
        "key_id": f"key{next(_numbers)}",
        "name": "mailer",
        "secret_hash": hash_secret(secret),
        "roles": (Role.PRODUCE,),
        "created_at": NOON,
    }
    return ApiKey(**(defaults | fields))


def a_fleet_status(name: str = "mail", **fields: Any) -> FleetStatus:
    """After a run that had five workers asked for."""
    replicas = Replicas(running=1, requested=1)
    sample = Sample(ready=100, consume_rate=1.0)
    window, said = analyse(
        ReadingWindow(), sample, replicas, Profile(samples_needed=1, backlog_goal_s=1)
    )
    decision = Decision(
        change=said.change,
        wanted=said.wanted,
        reason=said.reason,
        recommended=said.change,
        because=said.reason,
        inputs=said.inputs,
    )
    fields = {
        "name": name,
        "group": "default",
        "queue": name,
        "source": "own",
        "profile": "default",
        "kind": "processes",
        "min": 0,
        "max": 10,
        "interval_ms": 10_000,
        "seen_at": NOON,
        "seen_by": "node-1",
        "sample": sample,
        "replicas": replicas,
        "decision": decision,
        "made": LastChange(at=NOON, change=5, wanted=6, reason="backlog", is_done=True),
        "state": FleetState(window=window, replicas=replicas, expected=6, wanted=6),
        **fields,
    }
    return FleetStatus(**fields)
