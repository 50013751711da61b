"""The sending half of the load: plain producers, and FIFO senders that retry under a dedup key."""

from __future__ import annotations

import random
from typing import Any

from tests.faults.history import Kind, Op, Outcome
from tests.faults.wire import Answer, Wire
from tests.faults.workload import FIFO, STANDARD, ClientContext, a_body, now


def produce(context: ClientContext, number: int, seed: int) -> None:
    """Send without ever retrying: each message is acknowledged, refused or unknown."""
    wire, dice, sent = context.wire(number), random.Random(seed), 0
    while not context.stopped.is_set():
        if _is_too_far_ahead(context):
            context.stopped.wait(0.01)
            continue
        count = context.workload.batch if dice.random() < 0.5 else 1
        uids = [f"p{number}-{sent + n}" for n in range(count)]
        sent += count
        bodies = [a_body(uid, dice) for uid in uids]
        answer, ids = send_plain(wire, STANDARD, bodies)
        context.history.add(
            *(
                sent_op(answer, STANDARD, f"p{number}", body, message_id)
                for body, message_id in zip(bodies, ids, strict=True)
            )
        )
        context.breathe(answer)
        context.stopped.wait(context.workload.pause_s)
    wire.close()


def send_plain(wire: Wire, queue: str, bodies: list[dict[str, Any]]) -> tuple[Answer, list[str]]:
    """Send one, or several in one transaction; the ids are empty unless it was acknowledged."""
    path = f"/v1/queues/{queue}/messages"
    if len(bodies) == 1:
        answer = wire.call("POST", path, {"body": bodies[0]})
        return answer, [answer.data["id"] if answer.outcome is Outcome.OK else ""]
    drafts = [{"body": body} for body in bodies]
    answer = wire.call("POST", f"{path}/batch", {"messages": drafts})
    if answer.outcome is not Outcome.OK:
        return answer, [""] * len(bodies)
    # A refused draft inside an accepted batch would have no id: none of ours may be refused.
    return answer, [result["id"] for result in answer.data["results"]]


def send_in_order(context: ClientContext, number: int, seed: int) -> None:
    """Send each group's messages one after the other, retrying each until it is acknowledged."""
    wire, dice = context.wire(number), random.Random(seed)
    seqs = {f"s{number}g{n}": 0 for n in range(context.workload.groups)}
    while not context.stopped.is_set():
        if _is_too_far_ahead(context):
            context.stopped.wait(0.01)
            continue
        group = dice.choice(list(seqs))
        seqs[group] += 1
        body = a_body(f"{group}-{seqs[group]}", dice, group=group, seq=seqs[group])
        context.history.add(_sent_at_last(context, wire, f"s{number}", body))
        context.stopped.wait(context.workload.pause_s)
    wire.close()


def _sent_at_last(context: ClientContext, wire: Wire, worker: str, body: dict[str, Any]) -> Op:
    draft = {"body": body, "group": body["group"], "dedup_key": body["uid"]}
    start, outcome, message_id, attempts = now(), Outcome.FAIL, "", 0
    while True:
        attempts += 1
        answer = wire.call("POST", f"/v1/queues/{FIFO}/messages", draft)
        if answer.outcome is Outcome.OK:
            outcome, message_id = Outcome.OK, answer.data["id"]
            break
        if answer.outcome is Outcome.UNKNOWN:
            outcome = Outcome.UNKNOWN
        elif answer.status:
            raise AssertionError(f"a sound FIFO send was refused: {answer.status} {answer.data}")
        if context.stopped.is_set():
            break
        context.breathe(answer)
    return Op(
        kind=Kind.SEND,
        outcome=outcome,
        start=start,
        end=answer.end,
        queue=FIFO,
        worker=worker,
        uid=body["uid"],
        message_id=message_id,
        group=body["group"],
        seq=body["seq"],
        attempts=attempts,
        body=body,
    )


def sent_op(answer: Answer, queue: str, worker: str, body: dict[str, Any], message_id: str) -> Op:
    return Op(
        kind=Kind.SEND,
        outcome=answer.outcome,
        start=answer.start,
        end=answer.end,
        queue=queue,
        worker=worker,
        uid=body["uid"],
        message_id=message_id,
        body=body,
    )


def _is_too_far_ahead(context: ClientContext) -> bool:
    done = context.history.acked(Kind.COMPLETE)
    return context.history.acked(Kind.SEND) - done > context.workload.max_backlog
