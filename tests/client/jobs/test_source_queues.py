"""A job source with several queues: completions reach the queue they belong to."""

from __future__ import annotations

import pytest

from penstock.client.errors import Unreachable
from penstock.client.remote.source import RemoteSource
from penstock.domain.errors import Forbidden, LeaseLost, StoreDamaged
from penstock.domain.message.lease import Verb
from penstock.worker.application import Unanswered
from penstock.worker.claimed_job import ClaimedJob, JobAct
from tests.edge.api import a_name

pytestmark = pytest.mark.environments("worker")


def claim(source, queues, *, limit=10, finishing=()):
    return source.claim(queues, limit=limit, lease_ms=1_000, worker_id="w", finishing=finishing)


def completion(work: ClaimedJob) -> JobAct:
    return JobAct(receipt=work.receipt, verb=Verb.COMPLETE, queue=work.queue)


def fill(app, names, *, count=1):
    for name in names * count:
        app.enqueue("kind", {}, queue=name)


def fail_claims_of(source, queue, monkeypatch, error):
    """Make claims from that queue raise; everything else passes through."""
    if isinstance(source, RemoteSource):
        home, verb = source._remote, "complete_and_claim_raw"
    else:
        home, verb = source._broker.messages, "claim"
    whole = getattr(home, verb)

    def fail(where, *args, **options):
        if queue == getattr(where, "name", where):
            raise error
        return whole(where, *args, **options)

    monkeypatch.setattr(home, verb, fail)


@pytest.mark.parametrize("count", [2, 3])
def test_jobs_of_every_queue_are_completed_with_the_next_claim(app, count):
    names = [a_name() for _ in range(count)]
    fill(app, names)
    source = app.job_source()
    found, _ = claim(source, names)
    assert [work.queue for work in found] == names

    more, answers = claim(source, names, finishing=[completion(work) for work in found])

    assert (more, answers) == ([], [None] * count)
    assert [type(answer) for answer in source.act([completion(work) for work in found])] == [
        LeaseLost
    ] * count


def test_a_claim_that_is_full_completes_what_the_other_queues_gave(app):
    names = [a_name(), a_name(), a_name()]
    fill(app, names, count=2)
    source = app.job_source()
    held = [work for name in names for work in claim(source, [name], limit=1)[0]]

    found, answers = claim(source, names, limit=1, finishing=[completion(work) for work in held])

    assert [work.queue for work in found] == names[:1]
    assert answers == [None, None, None]


def test_acts_of_several_queues_are_answered_in_their_order(app):
    names = [a_name(), a_name()]
    fill(app, names, count=2)
    source = app.job_source()
    [a, b, c, d] = claim(source, names)[0]
    finishing = [
        completion(d),
        JobAct(receipt="forged", verb=Verb.COMPLETE, queue=names[1]),
        JobAct(receipt=b.receipt, verb=Verb.RELEASE),
        completion(a),
        JobAct(receipt="forged", verb=Verb.FAIL),
        completion(c),
        completion(d),
    ]

    found, answers = claim(source, names, finishing=finishing)

    assert [work.id for work in found] == [b.id]
    assert [None if a is None else type(a) for a in answers] == [
        None,
        LeaseLost,
        None,
        None,
        LeaseLost,
        None,
        LeaseLost,
    ]


def test_completions_of_queues_that_are_not_claimed_from_are_done_as_well(app):
    names = [a_name(), a_name()]
    fill(app, names)
    source = app.job_source()
    held, _ = claim(source, names)

    _, answers = claim(source, names[:1], finishing=[completion(work) for work in held])

    assert answers == [None, None]


@pytest.mark.parametrize("failing", [0, 1])
def test_completions_are_done_when_a_queue_refuses_claims(app, monkeypatch, failing):
    names = [a_name(), a_name()]
    fill(app, names)
    source = app.job_source()
    held, _ = claim(source, names)
    fail_claims_of(source, names[failing], monkeypatch, Forbidden("this key is for other queues"))

    try:
        _, answers = claim(source, names, finishing=[completion(work) for work in held])
    except Forbidden:  # nothing was done: the worker sends them again
        answers = source.act([completion(work) for work in held])

    assert answers == [None, None]


@pytest.mark.environments("unreachable server")
def test_only_what_the_server_answered_counts_when_it_goes_away_halfway(app, monkeypatch):
    names = [a_name(), a_name(), a_name()]
    fill(app, names, count=2)
    source = app.job_source()
    held = [work for name in names for work in claim(source, [name], limit=1)[0]]
    finishing = [completion(work) for work in held]
    with monkeypatch.context() as patch:
        fail_claims_of(source, names[1], patch, Unreachable("gone", was_sent=False))
        found, answers = claim(source, names, finishing=finishing)

    assert [work.queue for work in found] == names[:1], "it is leased: the worker runs it"
    assert answers[0] is None
    assert [type(answer) for answer in answers[1:]] == [Unanswered, Unanswered]
    assert source.act(finishing[1:]) == [None, None]


@pytest.mark.environments("unreachable server")
def test_a_claim_raises_when_the_server_has_answered_nothing(app, monkeypatch):
    names = [a_name(), a_name()]
    fill(app, names)
    source = app.job_source()
    held, _ = claim(source, names)
    fail_claims_of(source, names[0], monkeypatch, Unreachable("gone", was_sent=False))

    with pytest.raises(Unreachable):
        claim(source, names, finishing=[completion(work) for work in held])


@pytest.mark.environments("unreachable server")
def test_acts_in_several_requests_keep_the_answers_before_a_failure(app, queue, monkeypatch):
    fill(app, [queue])
    source = app.job_source()
    [work], _ = claim(source, [queue])
    forged = [JobAct(receipt="forged", verb=Verb.FAIL)] * 300
    whole, sent = source._remote.act_batch, []

    def first_only(acts):
        sent.append(len(acts))
        if len(sent) > 1:
            raise Unreachable("gone", was_sent=False)
        return whole(acts)

    monkeypatch.setattr(source._remote, "act_batch", first_only)

    answers = source.act([completion(work), *forged])

    assert answers[0] is None
    assert {type(answer) for answer in answers[1 : sent[0]]} == {LeaseLost}
    assert {type(answer) for answer in answers[sent[0] :]} == {Unanswered}


def test_a_damaged_queue_does_not_keep_the_others_from_being_claimed(app, monkeypatch, caplog):
    names = [a_name() for _ in range(3)]
    fill(app, names)
    source = app.job_source()
    [first, *_], _ = claim(source, names[:1])
    fail_claims_of(source, names[0], monkeypatch, StoreDamaged("a page is damaged"))

    found, answers = claim(source, names, finishing=[completion(first)])
    claim(source, names)

    assert [work.queue for work in found] == names[1:]
    assert answers == [None], "the completion was kept"
    lines = [record.getMessage() for record in caplog.records if names[0] in record.getMessage()]
    assert lines == [f"skipping queue {names[0]!r}: a page is damaged"]
