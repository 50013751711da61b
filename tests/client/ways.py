"""Ways: the environments in which users run the client, and what is impossible in some of them.

A way is a store, a caller and a number of queues. Every test of the client's behaviour runs on all
of `WAYS`; `@pytest.mark.every_way` takes the whole product. Callers meet both embedded stores in
the same code, so only tests that await, or name a row of `CONNECTED`, run with every caller on
PostgreSQL: on `CONNECTED_WAYS`, in which each pair of a store, a caller and a number occurs.
A test that cannot run on all of them names a row of `LIMITS` with `@pytest.mark.ways("row")`.
A test without a store names a row of `NO_STORE` with `@pytest.mark.no_store("row")`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from itertools import product


class Backend(StrEnum):
    SQLITE = "sqlite"
    POSTGRES = "postgres"
    HTTP = "http"


class Caller(StrEnum):
    SYNC = "sync"  # plain code, no event loop
    LOOP = "loop"  # the same code inside a running event loop
    AWAIT = "await"  # the `_async` version of each call that has one, on a running event loop


class Queues(StrEnum):
    ONE = "one"
    SEVERAL = "several"  # the worker also claims from neighbours, and completes with such a claim


@dataclass(frozen=True)
class Way:
    backend: Backend
    caller: Caller = Caller.SYNC
    queues: Queues = Queues.ONE

    def __str__(self) -> str:
        return f"{self.backend}-{self.caller}-{self.queues}"


@dataclass(frozen=True)
class Limit:
    is_possible: Callable[[Way], bool]
    reason: str


EVERY_WAY = tuple(Way(*parts) for parts in product(Backend, Caller, Queues))

WAYS = (
    Way(Backend.SQLITE, Caller.SYNC, Queues.ONE),
    Way(Backend.SQLITE, Caller.LOOP, Queues.SEVERAL),
    Way(Backend.SQLITE, Caller.AWAIT, Queues.SEVERAL),
    Way(Backend.POSTGRES, Caller.SYNC, Queues.SEVERAL),
    Way(Backend.HTTP, Caller.SYNC, Queues.SEVERAL),
    Way(Backend.HTTP, Caller.LOOP, Queues.ONE),
    Way(Backend.HTTP, Caller.AWAIT, Queues.ONE),
)

CONNECTED_WAYS = (
    *WAYS,
    Way(Backend.POSTGRES, Caller.LOOP, Queues.ONE),
    Way(Backend.POSTGRES, Caller.AWAIT, Queues.ONE),
)
CONNECTED = {"own transaction", "sync connection", "asyncpg", "psycopg2", "async test"}

LIMITS = {
    "own transaction": Limit(
        lambda way: way.backend is not Backend.HTTP,
        "a server cannot take part in a transaction of the caller's database",
    ),
    "sync connection": Limit(
        lambda way: way.caller is not Caller.AWAIT,
        "the connection is sync; async forms take connections that belong to an event loop",
    ),
    "asyncpg": Limit(
        lambda way: way.backend is Backend.POSTGRES and way.caller is Caller.LOOP,
        "asyncpg speaks to PostgreSQL, on an event loop",
    ),
    "async test": Limit(
        lambda way: way.caller is Caller.LOOP,
        "the test awaits: it is itself the program on the event loop",
    ),
    "worker": Limit(
        lambda way: way.caller is Caller.SYNC,
        "a worker claims and acts on threads of its own, never on the caller's event loop",
    ),
    "unreachable server": Limit(
        lambda way: way.backend is Backend.HTTP,
        "the test is about a server that does not answer; an embedded store has no such state",
    ),
    "volume": Limit(
        lambda way: way.caller is Caller.SYNC,
        "the test is about numbers, which the caller does not change, and takes a second or more",
    ),
    "Django": Limit(
        lambda way: way.caller is Caller.SYNC,
        "Django refuses sync use of its connections inside a running event loop",
    ),
    "psycopg2": Limit(
        lambda way: way.backend is Backend.POSTGRES,
        "psycopg2 speaks to PostgreSQL",
    ),
    "file": Limit(
        lambda way: way.backend is Backend.SQLITE,
        "only a file has one writer: a call of ours may wait there for the caller's transaction",
    ),
    "kit": Limit(
        lambda way: way.backend is not Backend.HTTP,
        "the kit opens a store of its own, and runs the jobs of all queues itself",
    ),
    "fork": Limit(
        lambda way: way.caller is Caller.SYNC,
        "asyncio does not support a fork inside a running event loop",
    ),
}

NO_STORE = {
    "declaring": "the call is rejected or described before anything is opened",
    "codec": "arguments are encoded and decoded without a store",
    "process": "the test starts a program of its own",
    "log": "the test is about the lines that a worker logs",
    "hooks": "the test is about hooks in both forms of the kit, on the store that the kit makes",
    "server": "the test is about the HTTP client or a key of a server",
    "embedded": "the test is about the embedded store alone: its file, schema or duties",
    "flow": "the test answers the questions of a flow itself",
    "this suite": "the test is about these tables",
}
