"""Each single call to the disk fails once; the request reports it and the next one works."""

from __future__ import annotations

import time
from pathlib import Path

from tests.faults.checker import Rules, check
from tests.faults.conftest import MakeServer
from tests.faults.consumers import act_on, claim
from tests.faults.drain import drain
from tests.faults.figures import figure
from tests.faults.history import History, Outcome
from tests.faults.producers import send_plain, sent_op
from tests.faults.scenario import assert_kept, on_faulty_disk
from tests.faults.server import Server
from tests.faults.wire import Answer, Wire

QUEUE = "faults-walk"
LEASE_MS = 400
MAX_CALLS = figure(20, 400)
PAST_THE_LAST = 3  # rounds without a failure: then there are no more calls to fail
HEALED_S = 60.0


def one_round(wire: Wire, history: History, number: int) -> list[Answer]:
    """A send, a claim, an extension, a completion."""
    body = {"uid": f"w{number}", "text": "x" * (number % 7) * 1500}
    sent, ids = send_plain(wire, QUEUE, [body])
    history.add(sent_op(sent, QUEUE, "walker", body, ids[0]))
    claimed, claims = claim(wire, history, QUEUE, limit=1, lease_ms=LEASE_MS)
    answers = [sent, claimed]
    for op in claims:
        answers.append(act_on(wire, history, op, "extend", {"lease_ms": LEASE_MS}))
        answers.append(act_on(wire, history, op, "complete"))
    return answers


def test_every_call_to_the_disk_may_fail_once_and_only_its_own_request_suffers(
    make_server: MakeServer, tmp_path: Path
) -> None:
    server = make_server(**on_faulty_disk(tmp_path / "data"))
    server.start()
    history, wire = History(), Wire(server.port)
    assert wire.call("PUT", f"/v1/queues/{QUEUE}", {"max_attempts": None}).outcome is Outcome.OK
    failed: list[str] = []
    unhurt = number = 0
    # The sync is the last call of a commit; duties of the server may make others before it.
    while unhurt < PAST_THE_LAST and (number < MAX_CALLS or "sync" not in failed):
        number += 1
        server.steer(set={"fail_in": number, "failed": ""})
        answers = one_round(wire, history, number)
        call = server.steer(set={"fail_in": 0}, get=["failed"])["failed"]
        failed.append(call)
        unhurt = 0 if call else unhurt + 1
        odd = [answer for answer in answers if answer.status not in (200, 201, 409, 503)]
        assert not odd, f"call {number} ({call}) failed and was answered {odd}"
        assert_works_again(server, wire, history, number)
    assert {"write", "sync"} <= set(failed), f"hardly anything failed: {failed}"
    totals = drain(server.port, history, (QUEUE,), within_s=60)
    assert_kept(check(history, totals, Rules(min_acked=number)), server)
    wire.close()


def assert_works_again(server: Server, wire: Wire, history: History, number: int) -> None:
    deadline, attempt = time.monotonic() + HEALED_S, 0
    while time.monotonic() < deadline:
        attempt += 1
        answers = one_round(wire, history, number * 1000 + attempt)
        if all(answer.outcome is Outcome.OK for answer in answers):
            return
        time.sleep(0.05)
    raise AssertionError(f"not healed {HEALED_S} s after call {number}\n{server.stderr_tail()}")


def test_a_start_with_one_failing_call_works_or_says_why_and_the_next_one_works(
    make_server: MakeServer, tmp_path: Path
) -> None:
    whole = make_server(tmp_path / "whole", **on_faulty_disk(tmp_path / "whole"))
    whole.start()
    calls = whole.steer(get=["calls"])["calls"]
    whole.kill()
    step = max(1, calls // figure(4, 60))
    for number in range(1, calls, step):
        data = tmp_path / f"start-{number}"
        options = on_faulty_disk(data) | {"trouble": {"fail_in": number}}
        first = make_server(data, **options)
        first.start(wait=False)
        time.sleep(0.1)
        try:
            first.wait_until_ready()
        except AssertionError:
            assert first.wait_for_end(HEALED_S), "neither ready nor exited"
            assert first.stderr_tail().strip(), "it exited without a reason"
        if first.process.poll() is None:
            first.kill()

        second = make_server(data)
        second.start()
        second.kill()
