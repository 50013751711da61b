"""The environments in which users run the client, and what is impossible in some of them.

An environment is a store, a caller and a number of queues. Every test of the client's behaviour
runs in all of `ENVIRONMENTS`; `@pytest.mark.every_environment` takes the whole product. Callers
meet both embedded stores in the same code, so only tests that await, or name a row of `CONNECTED`,
run with every caller on PostgreSQL: in `CONNECTED_ENVIRONMENTS`, in which each pair of a store, a
caller and a number occurs. A test that cannot run in all of them names a row of `LIMITS` with
`@pytest.mark.environments("row")`. A test without a store names a row of `NO_STORE` with
`@pytest.mark.no_store("row")`.
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
class Environment:
    backend: Backend
    caller: Caller = Caller.SYNC
    queues: Queues = Queues.ONE

    def __str__(self) -> str:
        return f"{self.backend}-{self.caller}-{self.queues}"


@dataclass(frozen=True)
class Limit:
    is_possible: Callable[[Environment], bool]
    reason: str


EVERY_ENVIRONMENT = tuple(Environment(*parts) for parts in product(Backend, Caller, Queues))

ENVIRONMENTS = (
    Environment(Backend.SQLITE, Caller.SYNC, Queues.ONE),
    Environment(Backend.SQLITE, Caller.LOOP, Queues.SEVERAL),
    Environment(Backend.SQLITE, Caller.AWAIT, Queues.SEVERAL),
    Environment(Backend.POSTGRES, Caller.SYNC, Queues.SEVERAL),
    Environment(Backend.HTTP, Caller.SYNC, Queues.SEVERAL),
    Environment(Backend.HTTP, Caller.LOOP, Queues.ONE),
    Environment(Backend.HTTP, Caller.AWAIT, Queues.ONE),
)

CONNECTED_ENVIRONMENTS = (
    *ENVIRONMENTS,
    Environment(Backend.POSTGRES, Caller.LOOP, Queues.ONE),
    Environment(Backend.POSTGRES, Caller.AWAIT, Queues.ONE),
)
CONNECTED = {"own transaction", "sync connection", "asyncpg", "psycopg2", "async test"}

LIMITS = {
    "own transaction": Limit(
        lambda one: one.backend is not Backend.HTTP,
        "a server cannot take part in a transaction of the caller's database",
    ),
    "sync connection": Limit(
        lambda one: one.caller is not Caller.AWAIT,
        "the connection is sync; async forms take connections that belong to an event loop",
    ),
    "asyncpg": Limit(
        lambda one: one.backend is Backend.POSTGRES and one.caller is Caller.LOOP,
        "asyncpg speaks to PostgreSQL, on an event loop",
    ),
    "async test": Limit(
        lambda one: one.caller is Caller.LOOP,
        "the test awaits: it is itself the program on the event loop",
    ),
    "worker": Limit(
        lambda one: one.caller is Caller.SYNC,
        "a worker claims and acts on threads of its own, never on the caller's event loop",
    ),
    "unreachable server": Limit(
        lambda one: one.backend is Backend.HTTP,
        "the test is about a server that does not answer; an embedded store has no such state",
    ),
    "volume": Limit(
        lambda one: one.caller is Caller.SYNC,
        "the test is about numbers, which the caller does not change, and takes a second or more",
    ),
    "Django": Limit(
        lambda one: one.caller is Caller.SYNC,
        "Django refuses sync use of its connections inside a running event loop",
    ),
    "psycopg2": Limit(
        lambda one: one.backend is Backend.POSTGRES,
        "psycopg2 speaks to PostgreSQL",
    ),
    "file": Limit(
        lambda one: one.backend is Backend.SQLITE,
        "only a file has one writer: a call of ours may wait there for the caller's transaction",
    ),
    "kit": Limit(
        lambda one: one.backend is not Backend.HTTP,
        "the kit opens a store of its own, and runs the jobs of all queues itself",
    ),
    "fork": Limit(
        lambda one: one.caller is Caller.SYNC,
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
    "context": "the test enters and leaves contexts itself",
    "flow": "the test answers the questions of a flow itself",
    "this suite": "the test is about these tables",
}
