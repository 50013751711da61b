"""The receiving half of the load: claim, then complete, extend, release or abandon."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

from tests.faults.history import History, Kind, Op, Outcome
from tests.faults.wire import Answer, Wire
from tests.faults.workload import ClientContext, now

LONGEST_WAIT_MS = 300
STALE_S = 0.2


def consume(context: ClientContext, number: int, seed: int, queue: str) -> None:
    wire, dice = context.wire(number), random.Random(seed)
    late: deque[Op] = deque()
    while not context.stopped.is_set():
        while late and _is_stale(late[0]):
            act_on(wire, context.history, late.popleft(), "complete")
        answer, claims = claim(
            wire,
            context.history,
            queue,
            limit=dice.randint(1, 10),
            lease_ms=context.workload.lease_ms,
        )
        context.breathe(answer)
        if claims:
            _work(context, wire, dice, claims, late)
    wire.close()


def claim(
    wire: Wire, history: History, queue: str, *, limit: int, lease_ms: int
) -> tuple[Answer, list[Op]]:
    answer = wire.call(
        "POST",
        f"/v1/queues/{queue}/claims",
        {"limit": limit, "wait_ms": LONGEST_WAIT_MS, "lease_ms": lease_ms},
    )
    if answer.outcome is not Outcome.OK:
        return answer, []
    number = history.next_answer()
    ops = [
        _claimed(answer, queue, message, place, number, lease_ms / 1000)
        for place, message in enumerate(answer.data["messages"])
    ]
    history.add(*ops)
    return answer, ops


def complete_all(wire: Wire, history: History, claims: list[Op]) -> Answer:
    """Complete all in one transaction; each is completed, or refused because its lease is lost."""
    acts = [{"receipt": op.receipt, "act": "complete"} for op in claims]
    answer = wire.call("POST", "/v1/leases/batch", {"acts": acts})
    if answer.outcome is not Outcome.OK:
        history.add(*(_act(Kind.COMPLETE, answer, answer.outcome, op) for op in claims))
        return answer
    for op, result in zip(claims, answer.data["results"], strict=True):
        outcome = Outcome.FAIL if "error" in result else Outcome.OK
        history.add(_act(Kind.COMPLETE, answer, outcome, op))
    return answer


def act_on(
    wire: Wire, history: History, claimed: Op, verb: str, body: dict[str, Any] | None = None
) -> Answer:
    """One act on one lease, recorded."""
    answer = wire.call("POST", f"/v1/leases/{claimed.receipt}/{verb}", body or {})
    kinds = {"complete": Kind.COMPLETE, "extend": Kind.EXTEND}
    done = _act(kinds.get(verb, Kind.GIVE_BACK), answer, answer.outcome, claimed)
    if verb == "extend":
        done.lease_s = (body or {})["lease_ms"] / 1000
    history.add(done)
    return answer


def _is_stale(claimed: Op) -> bool:
    """Its lease ended long enough ago for another worker to have claimed it."""
    return now() > claimed.end + claimed.lease_s + STALE_S


def _work(
    context: ClientContext, wire: Wire, dice: random.Random, claims: list[Op], late: deque[Op]
) -> None:
    w, kept = context.workload, []
    for op in claims:
        chance = dice.random()
        if dice.random() < w.dawdles:
            late.append(op)
            continue
        if chance < w.abandons:
            continue
        if chance < w.abandons + w.gives_back:
            act_on(wire, context.history, op, *_way_to_give_back(dice))
            continue
        if chance < w.abandons + w.gives_back + w.extends:
            act_on(wire, context.history, op, "extend", {"lease_ms": w.lease_ms})
        kept.append(op)
    if len(kept) > 1 and dice.random() < 0.7:
        complete_all(wire, context.history, kept)
    else:
        for op in kept:
            act_on(wire, context.history, op, "complete")


def _way_to_give_back(dice: random.Random) -> tuple[str, dict[str, Any]]:
    if dice.random() < 0.5:
        return "fail", {"error": "tried and failed", "retry_in_ms": 0}
    return "release", {"delay_ms": 0}


def _claimed(
    answer: Answer, queue: str, message: dict, place: int, number: int, lease_s: float
) -> Op:
    body = message["body"]
    whole = body if isinstance(body, dict) else {}
    return Op(
        kind=Kind.CLAIM,
        outcome=Outcome.OK,
        start=answer.start,
        end=answer.end,
        queue=queue,
        uid=str(whole.get("uid", "")),
        message_id=message["id"],
        receipt=message["receipt"],
        lease_no=message["lease_no"],
        lease_s=lease_s,
        group=str(whole.get("group", "")),
        seq=int(whole.get("seq", 0)),
        place=place,
        answer=number,
        body=body,
    )


def _act(kind: Kind, answer: Answer, outcome: Outcome, claimed: Op) -> Op:
    return Op(
        kind=kind,
        outcome=outcome,
        start=answer.start,
        end=answer.end,
        queue=claimed.queue,
        uid=claimed.uid,
        message_id=claimed.message_id,
        receipt=claimed.receipt,
        lease_no=claimed.lease_no,
        group=claimed.group,
        seq=claimed.seq,
    )
