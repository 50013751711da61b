"""The checker itself: it finds every broken promise, and accepts a sound history."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.faults.checker import Rules, Verdict, check
from tests.faults.history import Fault, History, Kind, Op, Outcome

QUEUE = "q"
LEASE_S = 1.0


def an_op(kind: Kind, at: float, uid: str, **fields: Any) -> Op:
    """An operation that lasts from `at` for ten milliseconds."""
    op = Op(
        kind=kind,
        outcome=Outcome.OK,
        start=at,
        end=at + 0.01,
        queue=QUEUE,
        uid=uid,
        message_id=f"id-{uid}",
        body={"uid": uid},
    )
    return replace(op, **fields)


def sent(at: float, uid: str, **fields: Any) -> Op:
    return an_op(Kind.SEND, at, uid, **fields)


def claimed(at: float, uid: str, no: int = 1, **fields: Any) -> Op:
    known = {"receipt": f"{uid}/{no}", "lease_no": no, "lease_s": LEASE_S, "answer": int(at * 1e6)}
    return an_op(Kind.CLAIM, at, uid, **(known | fields))


def completed(at: float, uid: str, no: int = 1, **fields: Any) -> Op:
    known: dict[str, Any] = {"receipt": f"{uid}/{no}", "lease_no": no}
    return an_op(Kind.COMPLETE, at, uid, **(known | fields))


def extended(at: float, uid: str, no: int = 1, **fields: Any) -> Op:
    known = {"receipt": f"{uid}/{no}", "lease_no": no, "lease_s": LEASE_S}
    return an_op(Kind.EXTEND, at, uid, **(known | fields))


def stats(at: float = 100.0, **totals: int) -> Op:
    names = ("sent", "done", "dead", "cancelled", "now_waiting", "now_ready", "now_leased")
    return an_op(Kind.STATS, at, "", totals={name: totals.get(name, 0) for name in names})


def verdict_on(*ops: Op, stats: Op, faults: tuple[Fault, ...] = (), **rules: Any) -> Verdict:
    history = History()
    history.add(*ops)
    history.faults.extend(faults)
    return check(history, [stats], Rules(**({"min_acked": 1} | rules)))


SOUND = (sent(0, "a"), claimed(1, "a"), completed(1.5, "a"))
ONE_DONE = stats(sent=1, done=1)


def test_a_sound_history_is_clean() -> None:
    verdict = verdict_on(*SOUND, stats=ONE_DONE)

    assert verdict.is_clean, str(verdict)


@pytest.mark.parametrize(
    ("name", "ops", "stats"),
    [
        ("lost", (*SOUND, sent(0, "b")), stats(sent=2, done=2)),
        ("lost", (*SOUND, sent(0, "b"), claimed(1, "b")), stats(sent=2, done=1)),
        ("unexpected", (*SOUND, claimed(2, "x")), ONE_DONE),
        (
            "unexpected",
            (*SOUND, sent(0, "b", outcome=Outcome.FAIL), claimed(1, "b"), completed(2, "b")),
            stats(sent=2, done=2),
        ),
        ("corrupt", (sent(0, "a"), claimed(1, "a", body={"uid": "a", "x": 1})), stats(sent=1)),
        (
            "stored twice",
            (*SOUND, claimed(1, "a", receipt="r", message_id="id-other")),
            stats(sent=2, done=1),
        ),
        ("resurrected", (*SOUND, claimed(9, "a", 2)), ONE_DONE),
        ("completed twice", (*SOUND, claimed(3, "a", 2), completed(4, "a", 2)), ONE_DONE),
        ("two leases at once", (sent(0, "a"), claimed(1, "a"), claimed(1.9, "a", 2)), ONE_DONE),
        (
            "two leases at once",
            (sent(0, "a"), claimed(1, "a"), extended(1.8, "a"), claimed(2.5, "a", 2)),
            ONE_DONE,
        ),
        (
            "two leases at once",
            (sent(0, "a"), claimed(1, "a"), claimed(1.005, "a", 2)),
            ONE_DONE,
        ),
        (
            "stale lease accepted",
            (sent(0, "a"), claimed(1, "a"), claimed(3, "a", 2), completed(3.5, "a", 1)),
            ONE_DONE,
        ),
        (
            "receipt reused",
            (sent(0, "a"), claimed(1, "a"), claimed(3, "a", 2, receipt="a/1")),
            ONE_DONE,
        ),
        (
            "lease number went back",
            (sent(0, "a"), claimed(1, "a", 2), claimed(3, "a", 1)),
            ONE_DONE,
        ),
        ("totals do not balance", SOUND, stats(sent=2, done=1)),
        ("totals do not balance", SOUND, stats(sent=2, done=2)),
        ("not drained", (*SOUND, sent(0, "b")), stats(sent=2, done=1, now_leased=1)),
        ("counter went back", (*SOUND, stats(2, sent=1, done=1), stats(3, sent=1)), ONE_DONE),
        (
            "id went back",
            (sent(0, "a", worker="w", message_id="b0"), sent(1, "b", worker="w", message_id="a0")),
            stats(sent=2),
        ),
    ],
)
def test_a_broken_promise_is_found(name: str, ops: tuple[Op, ...], stats: Op) -> None:
    verdict = verdict_on(*ops, stats=stats)

    assert name in verdict.broken, str(verdict)


def in_group(make: Any, at: float, seq: int, **fields: Any) -> Op:
    op: Op = make(at, f"g-{seq}", group="g", seq=seq, **fields)
    op.body = {"uid": op.uid, "group": "g", "seq": seq}
    return op


TWO_IN_ORDER = (in_group(sent, 0, 1), in_group(sent, 0.1, 2))


def test_a_message_that_overtakes_an_unfinished_one_of_its_group_is_found() -> None:
    overtaking = (in_group(claimed, 1, 2), in_group(completed, 1.1, 2), in_group(claimed, 2, 1))

    verdict = verdict_on(*TWO_IN_ORDER, *overtaking, stats=stats(sent=2, done=1))

    assert "out of order" in verdict.broken


def test_a_group_finished_one_by_one_is_in_order() -> None:
    acts = (
        in_group(claimed, 1, 1),
        in_group(completed, 1.1, 1),
        in_group(claimed, 1.2, 2),
        in_group(completed, 1.3, 2),
    )

    verdict = verdict_on(*TWO_IN_ORDER, *acts, stats=stats(sent=2, done=2))

    assert verdict.is_clean, str(verdict)


def test_several_of_a_group_may_come_in_one_answer_but_only_in_order() -> None:
    def together(first: int, second: int) -> Verdict:
        acts = (
            in_group(claimed, 1, first, answer=7, place=0),
            in_group(claimed, 1, second, answer=7, place=1),
            in_group(completed, 1.1, 1),
            in_group(completed, 1.2, 2),
        )
        return verdict_on(*TWO_IN_ORDER, *acts, stats=stats(sent=2, done=2))

    assert together(1, 2).is_clean
    assert list(together(2, 1).broken) == ["out of order"]


def test_a_second_lease_after_the_first_could_have_ended_is_allowed() -> None:
    late = (sent(0, "a"), claimed(1, "a"), claimed(2.0, "a", 2), completed(2.5, "a", 2))

    assert verdict_on(*late, stats=ONE_DONE).is_clean


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.UNKNOWN])
def test_a_lease_that_was_perhaps_released_may_be_claimed_again(outcome: Outcome) -> None:
    given_back = replace(completed(1.1, "a"), kind=Kind.GIVE_BACK, outcome=outcome)
    ops = (sent(0, "a"), claimed(1, "a"), given_back, claimed(1.2, "a", 2), completed(2, "a", 2))

    assert verdict_on(*ops, stats=ONE_DONE).is_clean


def test_a_power_cut_may_forget_a_lease_but_never_a_completion() -> None:
    cut = Fault("power", 1.2, 1.3, forgets_leases=True)
    again = (sent(0, "a"), claimed(1, "a"), claimed(1.5, "a", receipt="r"))
    done = completed(1.7, "a", receipt="r")

    assert verdict_on(*again, done, stats=ONE_DONE, faults=(cut,)).is_clean
    verdict = verdict_on(*SOUND, claimed(1.8, "a", 2), stats=ONE_DONE, faults=(cut,))
    assert "resurrected" in verdict.broken


def test_a_lease_cut_short_by_a_clock_set_forward_is_counted_but_allowed() -> None:
    ops = (sent(0, "a"), claimed(1, "a"), claimed(1.5, "a", 2), completed(2, "a", 2))

    verdict = verdict_on(*ops, stats=ONE_DONE, leases_may_end_early=True)

    assert verdict.is_clean
    assert verdict.counts["leases ended early"] == 1


def test_an_unknown_outcome_may_have_happened_or_not() -> None:
    unknown = sent(0, "b", outcome=Outcome.UNKNOWN, message_id="")

    assert verdict_on(*SOUND, unknown, stats=ONE_DONE).is_clean
    landed = (unknown, claimed(1, "b"), completed(2, "b"))
    assert verdict_on(*SOUND, *landed, stats=stats(sent=2, done=2)).is_clean


def test_too_few_acknowledgements_prove_nothing() -> None:
    assert verdict_on(*SOUND, stats=ONE_DONE, min_acked=2).invalid


def test_a_run_that_could_not_read_its_totals_is_invalid() -> None:
    assert verdict_on(*SOUND, stats=replace(ONE_DONE, outcome=Outcome.UNKNOWN)).invalid


def test_a_dead_client_thread_makes_the_run_invalid() -> None:
    history = History()
    history.add(*SOUND)
    history.problems.append("client thread died")

    assert check(history, [ONE_DONE], Rules(min_acked=1)).invalid
