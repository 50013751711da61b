"""How a type checker sees jobs.  Mypy checks it with all other files; nothing here is run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

from penstock import Batch, Enqueued, Item, Job, Penstock, Unique, current
from penstock.client.jobs.job import Enqueuing
from penstock.domain.message.lifecycle import State

app = Penstock("sqlite:///jobs.db")


@app.job(queue="mail", attempts=5, backoff=["1s", "1m"], timeout="30s", unique=Unique(by=("to",)))
def send_mail(to: str, subject: str = "hi") -> int:
    return len(to)


@app.job
async def fetch(url: str, *, deep: bool = False) -> bytes:
    return url.encode()


def plain_calls() -> None:
    assert_type(send_mail("ada"), int)
    send_mail(5)  # type: ignore[arg-type]
    job: Job[..., int] = send_mail
    job("anything")


def enqueues() -> None:
    assert_type(send_mail.enqueue("ada", subject="x"), Enqueued[int])
    assert_type(send_mail.enqueue_in("5m", "ada"), Enqueued[int])
    assert_type(send_mail.enqueue_at(datetime(2030, 1, 1, tzinfo=UTC), "ada"), Enqueued[int])
    assert_type(send_mail.enqueue_many([send_mail.args("ada"), {"to": "bob"}]), list[Enqueued[int]])
    send_mail.using(priority=3, delay=timedelta(minutes=5), tags=("a",)).enqueue("ada")


async def results() -> None:
    handle = send_mail.enqueue("ada")
    assert_type(handle.result("30s"), int)
    assert_type(await handle, int)
    assert_type(await handle.result_async(timeout="30s"), int)
    assert_type(handle.state(), State)
    handle.result(5)  # type: ignore[arg-type]


def wrong_enqueues() -> None:
    send_mail.enqueue(5)  # type: ignore[arg-type]
    send_mail.enqueue()  # type: ignore[call-arg]
    send_mail.enqueue("ada", colour="red")  # type: ignore[call-arg]
    send_mail.enqueue_in("5m", 5)  # type: ignore[arg-type]
    send_mail.enqueue_in(5, "ada")  # type: ignore[arg-type]
    send_mail.args(5)  # type: ignore[arg-type]
    send_mail.using(priority="high")  # type: ignore[arg-type]
    send_mail.using(colour="red")  # type: ignore[call-arg]
    send_mail.using(group="a").enqueue(5)  # type: ignore[arg-type]
    app.job(attempts="many")  # type: ignore[call-overload]
    app.queue("mail", lease=5)  # type: ignore[arg-type]


async def async_enqueues() -> None:
    assert_type(await fetch("http://here"), bytes)
    handle = await fetch.enqueue_async("http://here", deep=True)
    assert_type(await handle, bytes)
    assert_type(await handle.result_async("1s"), bytes)
    assert_type(handle.result(), bytes)
    assert_type(await (await fetch.enqueue_in_async("1s", "http://here")), bytes)
    assert_type(await app.enqueue_async("mail", {"to": "ada"}, queue="mail"), Enqueued[Any])
    await fetch.enqueue_async(5)  # type: ignore[arg-type]


def others() -> None:
    enqueuing: Enqueuing[[str, str], int] = send_mail.using(tx=object())
    enqueuing.enqueue("ada", "hi")
    assert_type(app.enqueue("mail", {"to": "ada"}, queue="mail", delay="1h"), Enqueued[Any])
    assert_type(current().deadline, datetime | None)


@app.job(batch=Batch(max=10))
def count(numbers: list[int]) -> list[int]:
    return numbers


@app.job(batch=Batch(max=10, by="group"), queue="mail")
async def add(items: list[Item[int]]) -> None:
    for item in items:
        assert_type(item.value, int)


@app.job(batch=Batch(max=10))
async def lengths(items: list[Item[str]]) -> list[int]:
    return [len(item.value) for item in items]


def chunks() -> None:
    count.enqueue(5)
    add.enqueue(5)
    count([1, 2])
    count.enqueue("five")  # type: ignore[arg-type]
    add.enqueue("five")  # type: ignore[arg-type]
    assert_type(count.enqueue(5), Enqueued[int])
    assert_type(lengths.enqueue("five").result(), int)
    assert_type(add.enqueue(5), Enqueued[Any])
