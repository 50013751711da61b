"""Which functions can be jobs, and how jobs and their queues are declared."""

from __future__ import annotations

import functools
import re
from datetime import UTC, datetime

import pytest

from penstock import Bury, Exponential, Penstock
from penstock.domain.errors import InvalidRequest
from penstock.domain.message.retry import Fixed, Listed
from tests.client.driver import WorkerDriver
from tests.client.jobs.driver import JobDriver
from tests.edge.api import a_name


@pytest.fixture
def idle() -> Penstock:
    """Declaring opens nothing."""
    return Penstock("postgresql://unknown@127.0.0.1:1/nowhere")


SOME_DAY = datetime(2031, 5, 1, tzinfo=UTC)


def plain() -> None: ...


@pytest.mark.no_store("declaring")
def test_a_job_goes_by_the_name_of_its_function_or_by_its_kind(idle):
    @idle.job
    def one() -> None: ...

    @idle.job()
    def two() -> None: ...

    @idle.job(kind="mail.third")
    def three() -> None: ...

    assert (one.kind, two.kind, three.kind) == ("one", "two", "mail.third")
    assert idle.handlers.kinds == ["mail.third", "one", "two"]
    assert dict(idle.handlers.jobs) == {"one": one, "two": two, "mail.third": three}
    assert idle.handlers.find("two") is two
    assert idle.handlers.find("four") is None


@pytest.mark.no_store("declaring")
def test_two_jobs_of_one_kind_are_refused(idle):
    idle.job(plain)

    def other() -> None: ...

    with pytest.raises(InvalidRequest, match=r"job 'plain' is already declared in .*\.py:\d+"):
        idle.job(kind="plain")(other)


@pytest.mark.no_store("declaring")
def test_the_same_function_may_be_declared_again_as_a_reload_does(idle):
    idle.job(plain)

    assert idle.job(plain).kind == "plain"


class Mailer:
    def send(self, to: str) -> None: ...

    @classmethod
    def sent(cls) -> None: ...


class Sender:
    def __call__(self) -> None: ...


def generator():
    yield


async def async_generator():
    yield


@pytest.mark.no_store("declaring")
@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (Mailer, "a job is a function"),
        (Mailer.send, "is a method"),
        (generator, "is a generator"),
        (async_generator, "is a generator"),
        (functools.partial(plain), "a job is a function, not functools.partial"),
        (Sender(), "a job is a function, not .*: define a function that calls it"),
    ],
)
def test_a_function_that_cannot_be_a_job_is_rejected_where_it_is_declared(idle, wrong, complaint):
    with pytest.raises(InvalidRequest, match=complaint):
        idle.job()(wrong)
    with pytest.raises(InvalidRequest, match=complaint):
        idle.job(kind="named")(wrong)


@pytest.mark.no_store("declaring")
def test_a_decorated_function_is_a_job_whatever_the_decorator_returns(idle):
    assert idle.job(functools.lru_cache(plain)).kind == "plain"


@pytest.mark.no_store("declaring")
@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        (None, "not None; is the variable set"),
        ("", "not ''; is the variable set"),
        (5, "not 5"),
        ("redis://x", "not 'redis://x'"),
        ("sqlite:///", "lacks the path of a file"),
        ("sqlite:///?checksums=off", "lacks the path of a file"),
        ("sqlite:///:memory:", "does not name a file"),
    ],
)
def test_a_url_that_names_no_store_is_refused_at_once(url, complaint):
    with pytest.raises(InvalidRequest, match=re.escape(complaint)):
        Penstock(url)
    with pytest.raises(InvalidRequest, match=re.escape(complaint)):
        Penstock("sqlite:///jobs.db").use(url)


@pytest.mark.no_store("declaring")
@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"priority": "high"}, "priority takes a whole number; smaller goes first, not 'high'"),
        ({"priority": True}, "priority takes a whole number"),
        ({"attempts": "3"}, "attempts takes a whole number, not '3'"),
        ({"group": 5}, "group takes a text, not 5"),
        ({"entity_id": 5}, "entity_id takes a text, not 5"),
        ({"dedup_key": 5}, "dedup_key takes a text, not 5"),
        ({"route": 5}, "route takes a text, not 5"),
        ({"trace": 5}, "trace takes a text, not 5"),
        ({"queue": 5}, "queue takes the name of a queue, not 5"),
        ({"attributes": {"a": 1}}, "attributes takes a dict of strings"),
        ({"tags": (1,)}, "tags takes a sequence of strings, not (1,)"),
        ({"tags": 5}, "tags takes a sequence of strings, not 5"),
        ({"delay": "1h", "due_at": SOME_DAY}, "give delay or due_at, not both"),
        ({"expires_in": "1h", "expires_at": SOME_DAY}, "give expires_in or expires_at, not both"),
    ],
)
def test_an_option_of_a_wrong_type_is_refused_by_its_name(idle, options, complaint):
    job = idle.job(plain)

    with pytest.raises(InvalidRequest, match=re.escape(complaint)):
        job.using(**options)


@pytest.mark.no_store("declaring")
def test_an_integer_that_is_too_large_for_json_is_named(idle):
    @idle.job
    def count(number) -> None: ...

    for value in (2**70, [{"n": -(2**70)}]):
        with pytest.raises(InvalidRequest, match=r"'number' is .*: integers must be from -2\*\*63"):
            count.enqueue(value)


@pytest.mark.no_store("declaring")
@pytest.mark.parametrize(
    ("about", "complaint"),
    [
        ({"colour": "red"}, "no setting colour"),
        ({"queue": "no such/name"}, "a queue name is"),
        ({"timeout": 30}, "timeout is 30: give a duration"),
        ({"backoff": 5}, "backoff is"),
        ({"backoff": []}, "at least one delay"),
        ({"backoff": Exponential(factor=0)}, "factor"),
        ({"expires_in": "x"}, "expires_in is"),
    ],
)
def test_invalid_settings_of_a_job_are_refused(idle, about, complaint):
    with pytest.raises(InvalidRequest, match=complaint):
        idle.job(**about)(plain)


@pytest.mark.no_store("declaring")
@pytest.mark.parametrize(
    ("given", "backoff"),
    [
        (None, None),
        ("10s", Fixed(10_000)),
        (["1s", "1m"], Listed((1_000, 60_000))),
        (Exponential(factor=3), Exponential(factor=3)),
    ],
)
def test_a_back_off_is_a_duration_several_or_a_formula(idle, given, backoff):
    assert idle.job(backoff=given)(plain).backoff == backoff


@pytest.mark.no_store("declaring")
def test_a_job_gives_a_worker_its_kind_and_settings(idle):
    @idle.job(timeout="30s", queue="mail")
    async def send() -> None: ...

    assert (send.is_async, send.timeout_ms) == (True, 30_000)
    assert idle.queues == ["mail"]
    assert repr(send) == "<Job 'send' in queue 'mail'>"


@pytest.mark.no_store("declaring")
@pytest.mark.parametrize("url", ["jobs.db", "redis://here", "", "sqlite://relative"])
def test_only_stores_and_servers_can_be_opened(url):
    with pytest.raises(InvalidRequest, match="Penstock opens"):
        Penstock(url)


def test_a_declared_queue_is_made_as_it_was_said(app, queue, driver, clock):
    app.queue(queue, lease="1m", max_attempts=1, backoff=["5s"])

    @app.job(queue=queue)
    def fail() -> None:
        raise ValueError("no")

    fail.enqueue()
    driver.run_due()
    clock.advance(minutes=1)

    assert driver.claim() == []  # its only attempt is over


def test_workers_leave_dead_letters_alone_unless_a_handler_takes_them(app, queue, clock):
    letters, worker = a_name(), WorkerDriver(app, clock)
    app.queue(queue, dead_letter_queue=letters)
    app.queue(letters)

    @app.job(queue=queue)
    def broken() -> None:
        raise Bury("no")

    app.job_source()  # creates both queues
    sent = broken.enqueue()
    worker.run_due()

    assert worker.claim() == []
    assert app.jobs.count(letters).ready == 1

    @app.notifications(letters).handler()
    def look(body: object) -> None: ...

    assert [job.id for job in worker.claim()] == [sent.id]


def test_a_queue_that_exists_keeps_what_is_not_said(url, clock, queue):
    with Penstock(url, clock=clock) as before:
        before.queue(queue, max_attempts=2, max_messages=1)
        before.enqueue("any", {}, queue=queue)
    with Penstock(url, clock=clock) as after:
        after.queue(queue, max_messages=5)
        after.enqueue("any", {}, queue=queue)
        works = JobDriver(after, clock, queue).claim()

    assert len(works) == 2


@pytest.mark.no_store("declaring")
@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"colour": 1}, "no setting 'colour'"),
        ({"lease": 5}, "lease is 5: give a duration"),
        ({"ordering": "sideways"}, "Invalid enum value 'sideways'"),
        ({"max_attempts": 0}, "max_attempts must be"),
    ],
)
def test_invalid_settings_of_a_queue_are_refused(idle, options, complaint):
    with pytest.raises(InvalidRequest, match=complaint):
        idle.queue("mail", **options)
